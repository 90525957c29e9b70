//! Grammar: only texts that match a JSON schema or a regular expression can come.
//!
//! The `llguidance` crate says, state by state, which tokens can go on; all others are ruled out before the first stage.

use std::fmt;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};

use crate::{Error, ErrorKind, Result, Tokenizer};

/// Between the parts of JSON: room for a line break and an indentation.
const WHITE_SPACE: &str = r"\n?[ \t]{0,16}";

/// A grammar compiled for one tokenizer. Cloning is cheap; every [`Sampler`](super::Sampler) has a place of its own in it.
///
/// Once the text is complete, only the tokens that end a text can come.
///
/// ```no_run
/// # fn main() -> Result<(), oxmlx_lm::Error> {
/// use oxmlx_lm::sampling::{Grammar, SamplingParams};
/// let tokenizer = oxmlx_lm::ModelFiles::open("model.gguf")?.tokenizer()?;
/// let schema = r#"{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}"#;
/// let grammar = Grammar::json_schema(&tokenizer, tokenizer.eos_ids(), schema)?;
/// let params = SamplingParams::builder().temperature(0.0).grammar(grammar).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Grammar(Arc<Matcher>);

impl Grammar {
    /// Texts that are JSON of this schema, itself given as text. `$ref` may point into the schema only. White space between its parts is
    /// bounded, since a model that can go on with spaces for ever does; the schema's own `x-guidance` may say otherwise. `eos` are the
    /// tokens that end a text.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a schema that is no JSON or uses what `llguidance` does not know, naming `json-schema`, and where `eos`
    /// has no token of the vocabulary; [`ErrorKind::Unsupported`] for a tokenizer whose tokens have no bytes of their own.
    pub fn json_schema(tokenizer: &Tokenizer, eos: &[u32], schema: &str) -> Result<Self> {
        let mut schema: serde_json::Value = serde_json::from_str(schema)
            .map_err(|e| Error::new(ErrorKind::Sampling, "not json").at_field("json-schema").caused_by(e))?;
        if let Some(schema) = schema.as_object_mut() {
            schema.entry("x-guidance").or_insert_with(|| serde_json::json!({ "whitespace_pattern": WHITE_SPACE }));
        }
        Self::compile(tokenizer, eos, TopLevelGrammar::from_json_schema(schema), "json-schema")
    }

    /// Texts that match the regular expression as a whole.
    ///
    /// # Errors
    /// As [`json_schema`](Self::json_schema), naming `regex`.
    pub fn regex(tokenizer: &Tokenizer, eos: &[u32], regex: &str) -> Result<Self> {
        Self::compile(tokenizer, eos, TopLevelGrammar::from_regex(regex), "regex")
    }

    fn compile(tokenizer: &Tokenizer, eos: &[u32], grammar: TopLevelGrammar, name: &str) -> Result<Self> {
        let failed = |what: &str| Error::new(ErrorKind::Sampling, what).at_field(name);
        let environment: TokEnv = Arc::new(Environment(trie(tokenizer, eos, name)?));
        let mut factory = ParserFactory::new_simple(&environment)
            .map_err(|e| failed("the tokenizer does not fit a grammar").caused_by(e))?;
        factory.quiet();
        let matcher = Matcher::new(factory.create_parser(grammar));
        match matcher.get_error() {
            None => Ok(Self(Arc::new(matcher))),
            Some(why) => Err(failed("can't be used as a grammar").caused_by(why)),
        }
    }
}

impl PartialEq for Grammar {
    /// Whether they are clones of one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar").finish_non_exhaustive()
    }
}

/// A sampler's place in the grammar.
#[derive(Clone)]
pub(super) struct GrammarState {
    matcher: Matcher,
    allowed: Option<SimpleVob>,
}

impl GrammarState {
    pub(super) fn new(grammar: &Grammar) -> Self {
        Self { matcher: Matcher::clone(&grammar.0), allowed: None }
    }

    /// A bit a token, 1 for those that can come next.
    pub(super) fn allowed(&mut self) -> Result<&[u32]> {
        let mask = match self.allowed.take() {
            Some(mask) => mask,
            None => self.matcher.compute_mask_or_eos().map_err(|e| {
                Error::new(ErrorKind::Sampling, "no token fits any more").at_field("grammar").caused_by(e)
            })?,
        };
        Ok(self.allowed.insert(mask).as_slice())
    }

    /// Goes on by a token.
    pub(super) fn push(&mut self, token: u32) -> Result<()> {
        let place = self.allowed()?;
        if place.get(token as usize / 32).is_none_or(|word| word >> (token % 32) & 1 == 0) {
            let what = format!("token {token} does not fit here");
            return Err(Error::new(ErrorKind::Sampling, what).at_field("grammar"));
        }
        // At its end only end tokens fit, and change nothing.
        if !self.matcher.is_stopped() {
            let failed = |e| Error::new(ErrorKind::Sampling, format!("token {token} was refused")).caused_by(e);
            self.matcher.consume_token(token).map_err(|e| failed(e).at_field("grammar"))?;
            self.allowed = None;
        }
        Ok(())
    }
}

impl fmt::Debug for GrammarState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarState").finish_non_exhaustive()
    }
}

/// The vocabulary as llguidance wants it. It never forces a tokenization, so that none has to be made.
struct Environment(TokTrie);

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<u32> {
        self.0.greedy_tokenize(text)
    }

    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

fn trie(tokenizer: &Tokenizer, eos: &[u32], name: &str) -> Result<TokTrie> {
    let size = tokenizer.vocab_size() as u32;
    let eos: Vec<u32> = eos.iter().copied().filter(|&id| id < size).collect();
    let Some(&first) = eos.first() else {
        let what = "the model names no token that ends a text, which a grammar needs";
        return Err(Error::new(ErrorKind::Sampling, what).at_field(name));
    };
    let words: Option<Vec<Vec<u8>>> = (0..size)
        .map(|id| {
            if tokenizer.is_special(id) || eos.contains(&id) {
                let name = tokenizer.token_of(id).unwrap_or_default();
                return Some([&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat());
            }
            tokenizer.token_bytes(id).map(<[u8]>::to_vec)
        })
        .collect();
    let words = words.ok_or_else(|| {
        let what = "this kind of tokenizer has no bytes for a token by itself, which a grammar needs";
        Error::new(ErrorKind::Unsupported, what).at_field(name)
    })?;
    Ok(TokTrie::from(&TokRxInfo::new(size, first), &words).with_eos_tokens(&eos))
}

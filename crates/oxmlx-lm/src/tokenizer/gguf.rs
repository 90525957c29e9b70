//! A tokenizer from the metadata of a GGUF file.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::normalizers::{Prepend, Replace, Sequence};
use tokenizers::{AddedToken, NormalizerWrapper};

use super::build::{Parts, PromptRule, Tokenizer};
use super::bytes::{ByteTable, Detokenizer, SPACE_MARK, Spelling};
use super::pretokenizer::Scheme;
use crate::gguf::Gguf;
use crate::{Error, ErrorKind, Result};

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const SCORES: &str = "tokenizer.ggml.scores";
const TYPES: &str = "tokenizer.ggml.token_type";

/// Tokens that end a chat model's turn; llama.cpp too stops at them whatever the metadata name as end-of-text.
const TURN_ENDS: [&str; 8] =
    ["<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>", "_<EOT>"];

/// A token's type, as the numbers of `tokenizer.ggml.token_type` have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// The vocabulary's metadata.
struct Source<'g, 'a> {
    gguf: &'g Gguf<'a>,
    tokens: &'g [&'a str],
    kinds: Vec<Kind>,
}

impl Tokenizer {
    /// Builds the tokenizer that a GGUF file carries: byte-pair encoding of GPT-2's kind (model `gpt2`) or SentencePiece's
    /// (model `llama`).
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] if a key is missing or doesn't fit the others; [`ErrorKind::Config`] if one has a wrong type;
    /// [`ErrorKind::Unsupported`] for another model or an unknown pre-tokenizer. The key is named.
    pub fn from_gguf(gguf: &Gguf<'_>) -> Result<Self> {
        let source = Source::read(gguf)?;
        let parts = match gguf.str(MODEL)?.ok_or_else(|| missing(MODEL))? {
            "gpt2" => source.byte_level(),
            "llama" => source.sentence_piece(),
            other => {
                let what =
                    format!("tokenizer {other:?} isn't implemented, only gpt2 and llama: use the model's folder");
                Err(Error::new(ErrorKind::Unsupported, what).at_field(MODEL))
            }
        };
        parts.map(Self::of_parts)
    }
}

impl<'g, 'a> Source<'g, 'a> {
    fn read(gguf: &'g Gguf<'a>) -> Result<Self> {
        let tokens = gguf.strs(TOKENS)?.ok_or_else(|| missing(TOKENS))?;
        if tokens.is_empty() || i32::try_from(tokens.len()).is_err() {
            return Err(wrong(TOKENS, format!("{} tokens make no vocabulary", tokens.len())));
        }
        let kinds = match gguf.i64s(TYPES)? {
            None => vec![Kind::Normal; tokens.len()],
            Some(numbers) if numbers.len() == tokens.len() => numbers
                .into_iter()
                .map(|n| match n {
                    1 => Ok(Kind::Normal),
                    2 => Ok(Kind::Unknown),
                    3 => Ok(Kind::Control),
                    4 => Ok(Kind::UserDefined),
                    0 | 5 => Ok(Kind::Unused),
                    6 => Ok(Kind::Byte),
                    n => Err(wrong(TYPES, format!("{n} is no token type"))),
                })
                .collect::<Result<_>>()?,
            Some(numbers) => {
                return Err(wrong(TYPES, format!("{} types for {} tokens", numbers.len(), tokens.len())));
            }
        };
        Ok(Self { gguf, tokens, kinds })
    }

    fn ids(&self, kinds: &[Kind]) -> impl Iterator<Item = u32> {
        (0..).zip(&self.kinds).filter(move |(_, k)| kinds.contains(k)).map(|(id, _)| id)
    }

    fn vocab(&self) -> Vocab {
        (0..).zip(self.tokens).map(|(id, &token)| (token.to_owned(), id)).collect()
    }

    fn byte_level(&self) -> Result<Parts> {
        let scheme = Scheme::named(self.gguf.str("tokenizer.ggml.pre")?.unwrap_or("default"))?;
        let mut merges = Merges::new();
        for &merge in self.gguf.strs(MERGES)?.ok_or_else(|| missing(MERGES))? {
            // A token may itself begin with a space, so that the first character is never the separator.
            let space = merge.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(at, _)| at);
            let (left, right) = space
                .map(|at| (&merge[..at], &merge[at + 1..]))
                .ok_or_else(|| wrong(MERGES, format!("merge {merge:?} has no two parts")))?;
            merges.push((left.to_owned(), right.to_owned()));
        }
        let model = BPE::builder().vocab_and_merges(self.vocab(), merges).ignore_merges(scheme.ignore_merges).build();
        let model = model.map_err(|e| wrong(MERGES, "the merges don't fit the tokens").caused_by(e))?;
        let mut inner = tokenizers::Tokenizer::new(model);
        inner.with_pre_tokenizer(Some(scheme.build().map_err(failed)?));
        inner.with_decoder(Some(ByteLevel::default()));
        self.finish(inner, Spelling::ByteLevel, scheme.add_bos)
    }

    fn sentence_piece(&self) -> Result<Parts> {
        let scores = self.gguf.f32s(SCORES)?.ok_or_else(|| missing(SCORES))?;
        if scores.len() != self.tokens.len() {
            return Err(wrong(SCORES, format!("{} scores for {} tokens", scores.len(), self.tokens.len())));
        }
        let mut builder = BPE::builder()
            .vocab_and_merges(self.vocab(), self.merges_by_score(scores))
            .byte_fallback(true)
            .fuse_unk(true);
        if let Some(unknown) = self.ids(&[Kind::Unknown]).next() {
            builder = builder.unk_token(self.tokens[unknown as usize].to_owned());
        }
        let mut inner = tokenizers::Tokenizer::new(builder.build().map_err(failed)?);
        let add_space = self.gguf.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
        let mut steps: Vec<NormalizerWrapper> = Vec::new();
        if add_space {
            steps.push(Prepend::new(SPACE_MARK.into()).into());
        }
        steps.push(Replace::new(" ", SPACE_MARK.to_string()).map_err(failed)?.into());
        inner.with_normalizer(Some(Sequence::new(steps)));
        self.finish(inner, Spelling::SentencePiece { drop_first_space: add_space }, true)
    }

    /// The merges behind a SentencePiece vocabulary: each way to cut a token in two tokens, the best-scored token first.
    ///
    /// SentencePiece knows scores only and takes the leftmost of equal ones; merges rank the ways to cut one token too. That can
    /// differ where two ways overlap in a text, for tokens that begin as they end; trained vocabularies show no case of it.
    fn merges_by_score(&self, scores: &[f32]) -> Merges {
        let normal: HashMap<&str, f32> =
            self.ids(&[Kind::Normal]).map(|id| (self.tokens[id as usize], scores[id as usize])).collect();
        let mut merges = Vec::new();
        for id in self.ids(&[Kind::Normal]) {
            let (token, score) = (self.tokens[id as usize], scores[id as usize]);
            for (at, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(at);
                if normal.contains_key(left) && normal.contains_key(right) {
                    merges.push((score, left, right));
                }
            }
        }
        merges.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| Reverse(a.1.len()).cmp(&Reverse(b.1.len()))));
        merges.into_iter().map(|(_, left, right)| (left.to_owned(), right.to_owned())).collect()
    }

    fn finish(&self, mut inner: tokenizers::Tokenizer, spelling: Spelling, add_bos: bool) -> Result<Parts> {
        let added = |kind: Kind, special: bool| -> Vec<AddedToken> {
            let token = |id: u32| AddedToken::from(self.tokens[id as usize].to_owned(), special).normalized(false);
            self.ids(&[kind]).map(token).collect()
        };
        inner.add_special_tokens(&added(Kind::Control, true));
        inner.add_tokens(&added(Kind::UserDefined, false));

        let special: BTreeSet<u32> = self.ids(&[Kind::Control]).collect();
        let verbatim = self.ids(&[Kind::Control, Kind::UserDefined, Kind::Unknown]).collect();
        let table = ByteTable::new(self.tokens.iter().copied(), &verbatim, spelling);
        let mut eos = Vec::new();
        for key in ["eos_token_id", "eot_token_id", "eom_token_id"] {
            eos.extend(self.token_id(&format!("tokenizer.ggml.{key}"))?);
        }
        let ends = self.ids(&[Kind::Control, Kind::UserDefined]);
        eos.extend(ends.filter(|&id| TURN_ENDS.contains(&self.tokens[id as usize])));
        let mut seen = BTreeSet::new();
        eos.retain(|&id| seen.insert(id));

        Ok(Parts {
            inner,
            detokenizer: Detokenizer::Bytes(table),
            vocab_size: self.tokens.len(),
            special,
            bos: self.token_id("tokenizer.ggml.bos_token_id")?,
            eos,
            prompt: PromptRule::Add {
                bos: self.gguf.bool("tokenizer.ggml.add_bos_token")?.unwrap_or(add_bos),
                eos: self.gguf.bool("tokenizer.ggml.add_eos_token")?.unwrap_or(false),
            },
        })
    }

    /// A special token's id; some writers put the largest number for none.
    fn token_id(&self, key: &str) -> Result<Option<u32>> {
        let Some(id) = self.gguf.usize(key)?.filter(|&n| n != u32::MAX as usize) else { return Ok(None) };
        if id >= self.tokens.len() {
            return Err(wrong(key, format!("token id {id} is outside the vocabulary of {}", self.tokens.len())));
        }
        Ok(Some(id as u32))
    }
}

fn missing(key: &str) -> Error {
    wrong(key, "missing: the file has no complete tokenizer")
}

fn wrong(key: &str, what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Tokenizer, what).at_field(key)
}

fn failed(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::new(ErrorKind::Tokenizer, "can't build the tokenizer").caused_by(source)
}

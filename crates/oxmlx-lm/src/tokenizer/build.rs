//! The tokenizer itself: what it knows of special tokens, encoding and decoding.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::bytes::{Detokenizer, Utf8Buffer};
use crate::{Error, ErrorKind, Result};

/// A model's tokenizer. Cloning is cheap: clones share everything.
#[derive(Clone)]
pub struct Tokenizer(Arc<Inner>);

struct Inner {
    parts: Parts,
    /// A copy that reads special tokens in a text as plain text, made when first wanted.
    literal: OnceLock<tokenizers::Tokenizer>,
}

/// What the readers of GGUF files and folders put together.
pub(super) struct Parts {
    pub(super) inner: tokenizers::Tokenizer,
    pub(super) detokenizer: Detokenizer,
    /// Ids below this exist.
    pub(super) vocab_size: usize,
    pub(super) special: BTreeSet<u32>,
    pub(super) bos: Option<u32>,
    /// The token that ends a text, first, and all others that end a generation.
    pub(super) eos: Vec<u32>,
    pub(super) prompt: PromptRule,
}

/// What a raw prompt gets beyond its own tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptRule {
    /// Begin-of-text before and end-of-text after it, each or neither.
    Add { bos: bool, eos: bool },
    /// What the `tokenizer.json`'s post-processor adds.
    PostProcessor,
}

impl Tokenizer {
    pub(super) fn of_parts(parts: Parts) -> Self {
        Self(Arc::new(Inner { parts, literal: OnceLock::new() }))
    }

    fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// The ids of `text`; special tokens written in it (`<|im_start|>`) become themselves, and nothing is added. For text that
    /// a chat template has rendered. Bytes that the vocabulary has no token for (SmolLM2 lacks some control characters) are left
    /// out, as llama.cpp and the `tokenizers` library do.
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] if the text can't be encoded.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        encode(&self.parts().inner, text, false)
    }

    /// The ids of `text` where special tokens written in it are mere characters: for text that isn't trusted.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_literal(&self, text: &str) -> Result<Vec<u32>> {
        let literal = self.0.literal.get_or_init(|| {
            let mut copy = self.parts().inner.clone();
            copy.set_encode_special_tokens(true);
            copy
        });
        encode(literal, text, false)
    }

    /// The ids of a raw prompt: as [`Tokenizer::encode`], with the begin-of-text token that the model wants, unless the text
    /// begins with it already.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        let parts = self.parts();
        let has_bos = self.bos_token().is_some_and(|bos| text.starts_with(&bos));
        match parts.prompt {
            PromptRule::PostProcessor => encode(&parts.inner, text, !has_bos),
            PromptRule::Add { bos, eos } => {
                let bos = parts.bos.filter(|_| bos && !has_bos);
                let eos = parts.eos.first().filter(|_| eos);
                let mut ids: Vec<u32> = bos.into_iter().collect();
                ids.extend(self.encode(text)?);
                ids.extend(eos);
                Ok(ids)
            }
        }
    }

    /// The text of `ids`, special tokens left out. What is no valid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let plain: Vec<u32> = ids.iter().copied().filter(|id| !self.is_special(*id)).collect();
        self.check_ids(ids)?;
        self.decode_ids(&plain)
    }

    /// The text of `ids`, special tokens written out.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_with_special(&self, ids: &[u32]) -> Result<String> {
        self.check_ids(ids)?;
        self.decode_ids(ids)
    }

    fn decode_ids(&self, ids: &[u32]) -> Result<String> {
        match &self.parts().detokenizer {
            Detokenizer::Bytes(table) => {
                let mut buffer = Utf8Buffer::default();
                let mut text = String::new();
                for (i, &id) in ids.iter().enumerate() {
                    buffer.push(table.bytes(id, i == 0), &mut text);
                }
                buffer.finish(&mut text);
                Ok(text)
            }
            Detokenizer::Library => self.decode_by_library(ids),
        }
    }

    pub(super) fn decode_by_library(&self, ids: &[u32]) -> Result<String> {
        self.parts().inner.decode(ids, false).map_err(|e| Error::new(ErrorKind::Tokenizer, "can't decode").caused_by(e))
    }

    pub(super) fn detokenizer(&self) -> &Detokenizer {
        &self.parts().detokenizer
    }

    /// The bytes of one token within a text; `None` for tokenizers where a token has none by itself.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        match self.detokenizer() {
            Detokenizer::Bytes(table) => Some(table.bytes(id, false)),
            Detokenizer::Library => None,
        }
    }

    pub(super) fn check_ids(&self, ids: &[u32]) -> Result<()> {
        let size = self.vocab_size();
        match ids.iter().find(|&&id| id as usize >= size) {
            None => Ok(()),
            Some(id) => {
                let what = format!("token id {id} is outside the vocabulary of {size}");
                Err(Error::new(ErrorKind::Tokenizer, what))
            }
        }
    }

    /// How many ids there are: every id is below this. A model's embedding may have more rows.
    pub fn vocab_size(&self) -> usize {
        self.parts().vocab_size
    }

    /// The token that begins a text, if the model has one.
    pub fn bos_id(&self) -> Option<u32> {
        self.parts().bos
    }

    /// The tokens that end a generation, the main one first; empty if the files name none.
    pub fn eos_ids(&self) -> &[u32] {
        &self.parts().eos
    }

    /// Whether `id` is a control token, which isn't part of the text.
    pub fn is_special(&self, id: u32) -> bool {
        self.parts().special.contains(&id)
    }

    /// The id of the token written `token`, special or not.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.parts().inner.token_to_id(token)
    }

    /// How the token `id` is written in the vocabulary, which isn't its text: see [`Tokenizer::decode`] for that.
    pub fn token_of(&self, id: u32) -> Option<String> {
        self.parts().inner.id_to_token(id)
    }

    /// How [`Tokenizer::bos_id`] is written.
    pub fn bos_token(&self) -> Option<String> {
        self.token_of(self.bos_id()?)
    }

    /// How the first of [`Tokenizer::eos_ids`] is written.
    pub fn eos_token(&self) -> Option<String> {
        self.token_of(*self.eos_ids().first()?)
    }
}

fn encode(tokenizer: &tokenizers::Tokenizer, text: &str, add: bool) -> Result<Vec<u32>> {
    let encoding = tokenizer.encode_fast(text, add);
    let encoding = encoding.map_err(|e| Error::new(ErrorKind::Tokenizer, "can't encode the text").caused_by(e))?;
    Ok(encoding.get_ids().to_vec())
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("bos_id", &self.bos_id())
            .field("eos_ids", &self.eos_ids())
            .finish_non_exhaustive()
    }
}

//! Token ids to text, one at a time.

use super::Tokenizer;
use super::bytes::{Detokenizer, Utf8Buffer};
use crate::Result;

/// Decodes a stream of tokens: what comes out, put together, is what [`Tokenizer::decode`] gives for all of them, and no piece
/// ends within a character.
///
/// ```no_run
/// # fn main() -> Result<(), oxmlx_lm::Error> {
/// # let tokenizer = oxmlx_lm::ModelFiles::open("model.gguf")?.tokenizer()?;
/// # let ids = [1, 2, 3];
/// let mut stream = oxmlx_lm::StreamDecoder::after(&tokenizer, &[0]);
/// for id in ids {
///     print!("{}", stream.push(id)?);
/// }
/// println!("{}", stream.finish()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    tokenizer: Tokenizer,
    with_special: bool,
    /// Whether no token has come yet and the tokens begin a text.
    at_start: bool,
    bytes: Utf8Buffer,
    window: Window,
    without_text: usize,
}

/// How many of the prompt's tokens the text of the next one can depend on; decoders look at one.
const CONTEXT: usize = 4;

/// For tokenizers without a byte table: the last tokens, decoded again with each new one.
#[derive(Clone, Debug, Default)]
struct Window {
    ids: Vec<u32>,
    /// Tokens whose text is out already; kept since the next token's text may depend on them.
    settled: usize,
}

impl StreamDecoder {
    /// For tokens that begin a text: equals [`Tokenizer::decode`], which for some vocabularies drops the first space.
    pub fn new(tokenizer: &Tokenizer) -> Self {
        Self {
            tokenizer: tokenizer.clone(),
            with_special: false,
            at_start: true,
            bytes: Utf8Buffer::default(),
            window: Window::default(),
            without_text: 0,
        }
    }

    /// For tokens that go on from `prompt`: no space is dropped, and what comes out can be put behind the prompt's text.
    pub fn after(tokenizer: &Tokenizer, prompt: &[u32]) -> Self {
        let mut stream = Self { at_start: prompt.is_empty(), ..Self::new(tokenizer) };
        if matches!(tokenizer.detokenizer(), Detokenizer::Library) {
            stream.window.ids = prompt[prompt.len().saturating_sub(CONTEXT)..].to_vec();
            stream.window.settled = stream.window.ids.len();
        }
        stream
    }

    /// Writes special tokens out instead of leaving them out.
    #[must_use]
    pub fn with_special(mut self) -> Self {
        self.with_special = true;
        self
    }

    /// The text that `id` completes, which may be empty: a character can take several tokens. A token that the model has and the tokenizer
    /// lacks has no text; [`without_text`](Self::without_text) counts them.
    ///
    /// # Errors
    /// [`Tokenizer`](crate::ErrorKind::Tokenizer) where the tokenizer's own decoder fails.
    pub fn push(&mut self, id: u32) -> Result<String> {
        let mut text = String::new();
        if id as usize >= self.tokenizer.vocab_size() {
            self.without_text += 1;
            return Ok(text);
        }
        if self.tokenizer.is_special(id) && !self.with_special {
            return Ok(text);
        }
        match self.tokenizer.detokenizer() {
            Detokenizer::Bytes(table) => self.bytes.push(table.bytes(id, self.at_start), &mut text),
            Detokenizer::Library => text = self.window.push(&self.tokenizer, id)?,
        }
        self.at_start = false;
        Ok(text)
    }

    /// How many tokens came that the tokenizer does not have: models' tables are often padded beyond it.
    pub fn without_text(&self) -> usize {
        self.without_text
    }

    /// The rest: U+FFFD where the last character was never completed.
    ///
    /// # Errors
    /// What [`StreamDecoder::push`] returns.
    pub fn finish(&mut self) -> Result<String> {
        let mut text = String::new();
        self.bytes.finish(&mut text);
        text.push_str(&self.window.finish(&self.tokenizer)?);
        Ok(text)
    }
}

impl Window {
    fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        self.ids.push(id);
        let text = self.fresh(tokenizer)?;
        if text.is_empty() || text.ends_with(char::REPLACEMENT_CHARACTER) {
            return Ok(String::new());
        }
        // The tokens just let out stay as the context of the next ones; those before them have done their part.
        self.ids.drain(..self.settled);
        self.settled = self.ids.len();
        Ok(text)
    }

    fn finish(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let text = if self.settled < self.ids.len() { self.fresh(tokenizer)? } else { String::new() };
        *self = Self::default();
        Ok(text)
    }

    /// What the tokens that aren't settled add to the text of those that are.
    fn fresh(&self, tokenizer: &Tokenizer) -> Result<String> {
        let before = tokenizer.decode_by_library(&self.ids[..self.settled])?;
        let all = tokenizer.decode_by_library(&self.ids)?;
        let same = before.chars().zip(all.chars()).take_while(|(b, a)| b == a).map(|(_, a)| a.len_utf8()).sum();
        Ok(all.split_at(same).1.to_owned())
    }
}

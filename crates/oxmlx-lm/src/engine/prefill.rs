//! Feeding a prompt in pieces.

use oxmlx::Array;

use super::{Engine, Sequence};
use crate::language_model::Logits;
use crate::{Error, ErrorKind, Result};

/// How far a prompt has been fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillProgress {
    /// Tokens done, those that the sequence had seen already included.
    pub done: usize,
    /// Tokens of the prompt.
    pub total: usize,
}

/// Feeds what `sequence` lacks of `prompt`, `chunk` tokens at a time (0 for all at once), and returns the last position's logits.
pub(super) fn prefill(
    engine: &Engine,
    sequence: &mut Sequence,
    prompt: &[u32],
    chunk: usize,
    progress: &mut dyn FnMut(PrefillProgress) -> bool,
) -> Result<Array> {
    check(engine, prompt)?;
    // The last token is always fed: its logits are what comes out.
    let common = sequence.seen.iter().zip(&prompt[..prompt.len() - 1]).take_while(|(a, b)| a == b).count();
    sequence.truncate(common)?;
    let total = prompt.len();
    let mut report = |done: usize| {
        if progress(PrefillProgress { done, total }) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "cancelled while the prompt was read"))
    };
    report(common)?;
    let rest = &prompt[common..];
    let mut last = None;
    for piece in rest.chunks(if chunk == 0 { rest.len() } else { chunk }) {
        let tokens = Array::from_slice(piece, (1, piece.len() as i32))?;
        let fed = feed(engine, sequence, piece, &tokens);
        if fed.is_err() {
            // A piece that failed half way may have reached some layers' caches and not others.
            let whole = sequence.seen.len();
            sequence.truncate(whole)?;
        }
        last = Some(fed?);
        report(sequence.seen.len())?;
    }
    last.ok_or_else(|| Error::new(ErrorKind::Prompt, "the prompt is empty"))
}

fn feed(engine: &Engine, sequence: &mut Sequence, piece: &[u32], tokens: &Array) -> Result<Array> {
    let logits = engine.model().forward(tokens, &mut sequence.caches, Logits::Last)?;
    let mut arrays = vec![logits.clone()];
    arrays.extend(sequence.caches.iter().flat_map(|cache| cache.arrays()));
    oxmlx::eval(&arrays)?;
    sequence.seen.extend_from_slice(piece);
    Ok(logits)
}

fn check(engine: &Engine, prompt: &[u32]) -> Result<()> {
    if prompt.is_empty() {
        return Err(Error::new(ErrorKind::Prompt, "the prompt is empty: give at least one token"));
    }
    let vocab = engine.model().vocab_size();
    if let Some(token) = prompt.iter().find(|&&token| token as usize >= vocab) {
        let what = format!("token {token} is outside the vocabulary of {vocab}: tokenizer and model don't fit");
        return Err(Error::new(ErrorKind::Prompt, what));
    }
    let context = engine.model().max_context();
    if prompt.len() > context {
        let what = format!("the prompt has {} tokens, the model's context is {context}: shorten it", prompt.len());
        return Err(Error::new(ErrorKind::Context, what));
    }
    Ok(())
}

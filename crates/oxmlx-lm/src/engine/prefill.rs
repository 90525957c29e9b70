//! Feeding a prompt in pieces.

use std::time::Duration;

use oxmlx::{Array, ops};

use super::plan::{Piece, PlanSpec, PrefillPlan};
use super::sequence::State;
use super::step::RowOutcome;
use super::{Engine, FinishReason, SequenceId, choose};
use crate::language_model::Logits;
use crate::{Error, ErrorKind, LanguageModel, Result};

/// How a prompt is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PrefillOptions {
    chunk: usize,
    tile: usize,
    boundary: Option<usize>,
}

impl Default for PrefillOptions {
    /// Pieces of 512 tokens, not padded.
    fn default() -> Self {
        Self { chunk: 512, tile: 1, boundary: None }
    }
}

impl PrefillOptions {
    /// The most tokens of a piece; 0 for all at once.
    pub fn chunk(mut self, chunk: usize) -> Self {
        self.chunk = chunk;
        self
    }

    /// Pieces are padded to a multiple of this, where the caches can forget the padding and the model's context has room for it.
    pub fn tile(mut self, tile: usize) -> Self {
        self.tile = tile;
        self
    }

    /// A piece ends here, so that the prefix can be kept ([`Engine::prefix`]).
    pub fn boundary(mut self, boundary: Option<usize>) -> Self {
        self.boundary = boundary;
        self
    }
}

/// One piece of one sequence's prompt.
#[derive(Clone, Debug)]
#[must_use]
pub struct PrefillStep<'a> {
    id: SequenceId,
    piece: &'a Piece,
}

impl<'a> PrefillStep<'a> {
    /// Feeds `piece` of the sequence's plan.
    pub fn new(id: SequenceId, piece: &'a Piece) -> Self {
        Self { id, piece }
    }
}

/// How long the host sleeps between two looks at whether a piece is done.
const POLL: Duration = Duration::from_micros(500);

impl<M: LanguageModel> Engine<M> {
    /// Gives a sequence its prompt and plans how to feed it. What the sequence has seen already and the prompt begins with is not fed
    /// again; what it has seen beyond that is forgotten.
    ///
    /// # Errors
    /// [`ErrorKind::Prompt`] for an empty prompt or a token outside the vocabulary, [`ErrorKind::Context`] for one that is longer than
    /// the model's context, [`ErrorKind::Sequence`] for a sequence that is not open. Nothing has changed then.
    pub fn begin(&mut self, id: SequenceId, prompt: &[u32], options: PrefillOptions) -> Result<PrefillPlan> {
        self.row(id)?;
        self.check_prompt(prompt)?;
        self.settle(id)?;
        let row = self.row_mut(id)?;
        let seen = &row.text[..row.fed.min(row.text.len())];
        // The last token is always fed: its logits are what comes out.
        let common = seen.iter().zip(&prompt[..prompt.len() - 1]).take_while(|(a, b)| a == b).count();
        let ahead = row.fed - common;
        if row.trim(ahead).is_err() {
            self.rebuild(id)?;
        }
        let context = self.model.max_context();
        let row = self.row_mut(id)?;
        row.text = prompt.to_vec();
        row.prompt = prompt.len();
        row.state = State::Feeding { logits: None };
        row.begin_sampler()?;
        let spec = PlanSpec::new(prompt.len()).adopted(row.fed).boundary(options.boundary);
        PrefillPlan::new(spec.chunk(options.chunk).tile(options.tile).slack(row.slack()).context(context))
    }

    /// Feeds one piece and waits until it is computed.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open or a piece that is not its next one, [`ErrorKind::Cache`] for padding that
    /// its caches could not forget and [`ErrorKind::Context`] for padding beyond the model's context (nothing has run then), [`ErrorKind::Mlx`] for what the computation reports. The sequence is as before,
    /// or has seen nothing where its caches can't go back.
    pub fn prefill(&mut self, step: PrefillStep<'_>) -> Result<()> {
        self.prefill_while(step, &mut || true)
    }

    /// [`prefill`](Self::prefill) that looks at `go_on` while the device computes, and gives up when it says no.
    ///
    /// # Errors
    /// As [`prefill`](Self::prefill), and [`ErrorKind::Cancelled`].
    pub fn prefill_while(&mut self, step: PrefillStep<'_>, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let PrefillStep { id, piece } = step;
        let row = self.row(id)?;
        if !matches!(row.state, State::Feeding { .. }) || piece.tokens.start != row.fed || piece.tokens.is_empty() {
            let what = format!("{id} has {} tokens: tokens {:?} are not its next piece", row.fed, piece.tokens);
            return Err(Error::new(ErrorKind::Sequence, what));
        }
        let Some(tokens) = row.text.get(piece.tokens.clone()) else {
            let what = format!("{id} has a prompt of {} tokens, not {:?}", row.text.len(), piece.tokens);
            return Err(Error::new(ErrorKind::Sequence, what));
        };
        if row.slack().is_some_and(|slack| piece.padding > slack) {
            let what =
                format!("{id}: its caches could not forget {} tokens of padding: plan without a tile", piece.padding);
            return Err(Error::new(ErrorKind::Cache, what));
        }
        let context = self.model.max_context();
        if piece.padding > 0 && piece.tokens.end.saturating_add(piece.padding) > context {
            let what = format!("{id}: {} tokens of padding reach over the model's context of {context}", piece.padding);
            return Err(Error::new(ErrorKind::Context, what));
        }
        let last = piece.tokens.end == row.text.len();
        let mut fed = tokens.to_vec();
        fed.resize(piece.fed(), fed.last().copied().unwrap_or(0));
        let before = row.fed;
        let tokens = Array::from_slice(&fed, (1, fed.len() as i32))?;
        let wanted = if last && piece.padding > 0 { Logits::All } else { Logits::Last };
        let mut logits = self.forward(&[id], &tokens, wanted)?;
        if wanted == Logits::All {
            logits = ops::take_index(&logits, piece.tokens.len() as i32 - 1, 1)?;
        }
        let row = self.row_mut(id)?;
        let mut arrays: Vec<Array> = row.caches.iter().flat_map(|cache| cache.arrays()).collect();
        if last {
            arrays.push(logits.clone());
        }
        let computed = wait(&arrays, go_on).and_then(|()| self.row_mut(id)?.trim(piece.padding));
        if computed.is_err() {
            let ahead = self.row(id)?.fed - before;
            let failed = !matches!(&computed, Err(error) if error.kind() == ErrorKind::Cancelled);
            // Arrays that failed hold nothing that could be gone back to.
            if failed || self.row_mut(id)?.trim(ahead).is_err() {
                self.rebuild(id)?;
            }
        } else if last {
            self.row_mut(id)?.state = State::Feeding { logits: Some(logits) };
        }
        computed
    }

    /// Chooses the first token of a sequence whose prompt is fed. With a budget of 0 nothing is chosen, and the sequence ends.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open or whose prompt is not complete. What choosing reports is in the outcome.
    pub fn complete_prefill(&mut self, id: SequenceId) -> Result<RowOutcome> {
        let row = self.row_mut(id)?;
        let State::Feeding { logits: Some(logits) } = &row.state else {
            let what = format!("{id}: its prompt is not complete, {} of {} tokens are fed", row.fed, row.text.len());
            return Err(Error::new(ErrorKind::Sequence, what));
        };
        if row.rules.max_tokens == 0 {
            row.state = State::Finished(FinishReason::Length);
            return Ok(RowOutcome { id, token: None, finish: Some(FinishReason::Length), error: None });
        }
        let logits = logits.clone();
        row.state = State::Decoding;
        let read =
            || -> Result<u32> { Ok(choose::choose(std::slice::from_ref(&row.sampler), &logits)?.to_vec::<u32>()?[0]) };
        let token = read();
        Ok(self.take(id, token))
    }

    /// Feeds `tokens` to a sequence and gives the logits of each of their positions, `[tokens, vocabulary]`. They become a part of its
    /// prompt.
    ///
    /// # Errors
    /// As [`begin`](Self::begin) and [`prefill`](Self::prefill).
    pub fn score(&mut self, id: SequenceId, tokens: &[u32]) -> Result<Array> {
        self.settle(id)?;
        let row = self.row(id)?;
        let text: Vec<u32> = row.text[..row.fed].iter().chain(tokens).copied().collect();
        self.check_prompt(tokens)?;
        self.check_prompt(&text)?;
        let before = row.fed;
        let input = Array::from_slice(tokens, (1, tokens.len() as i32))?;
        let logits = self.forward(&[id], &input, Logits::All)?;
        let scores = logits.reshape((tokens.len() as i32, self.model.vocab_size() as i32))?;
        let row = self.row_mut(id)?;
        let mut arrays: Vec<Array> = row.caches.iter().flat_map(|cache| cache.arrays()).collect();
        arrays.push(scores.clone());
        if let Err(error) = oxmlx::eval(&arrays) {
            self.rebuild(id)?;
            return Err(error.into());
        }
        debug_assert_eq!(row.fed, before + tokens.len());
        row.prompt = text.len();
        row.text = text;
        row.begin_sampler()?;
        row.state = State::Feeding { logits: Some(ops::take_index(&logits, tokens.len() as i32 - 1, 1)?) };
        Ok(scores)
    }

    fn check_prompt(&self, prompt: &[u32]) -> Result<()> {
        if prompt.is_empty() {
            return Err(Error::new(ErrorKind::Prompt, "the prompt is empty: give at least one token"));
        }
        let vocab = self.model.vocab_size();
        if let Some(token) = prompt.iter().find(|&&token| token as usize >= vocab) {
            let what = format!("token {token} is outside the vocabulary of {vocab}: tokenizer and model don't fit");
            return Err(Error::new(ErrorKind::Prompt, what));
        }
        let context = self.model.max_context();
        if prompt.len() > context {
            let what = format!("the prompt has {} tokens, the model's context is {context}: shorten it", prompt.len());
            return Err(Error::new(ErrorKind::Context, what));
        }
        Ok(())
    }
}

/// Computes `arrays`, looking at `go_on` now and then.
fn wait(arrays: &[Array], go_on: &mut dyn FnMut() -> bool) -> Result<()> {
    oxmlx::async_eval(arrays)?;
    let done = || arrays.iter().try_fold(true, |all, array| Ok::<_, oxmlx::Error>(all && array.is_available()?));
    while !done()? {
        if !go_on() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled while the prompt was read"));
        }
        std::thread::sleep(POLL);
    }
    // What failed is told by waiting for it.
    Ok(oxmlx::eval(arrays)?)
}

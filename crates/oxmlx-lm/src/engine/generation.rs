//! Decoding with lookahead.

use oxmlx::Array;

use super::choose::Chooser;
use super::prefill::{PrefillProgress, prefill};
use super::{Engine, Sequence};
use crate::language_model::Logits;
use crate::{Result, SamplingParams};

/// What to generate.
#[derive(Clone, Debug)]
#[must_use]
pub struct Request {
    pub(super) max_tokens: usize,
    pub(super) sampling: SamplingParams,
    pub(super) eos: Vec<u32>,
    pub(super) chunk: usize,
}

impl Request {
    /// At most `max_tokens` tokens, until one of `eos` comes.
    pub fn new(max_tokens: usize, eos: &[u32]) -> Self {
        Self { max_tokens, sampling: SamplingParams::greedy(), eos: eos.to_vec(), chunk: 512 }
    }

    /// How tokens are chosen; the most likely one by default.
    pub fn sampling(mut self, sampling: SamplingParams) -> Self {
        self.sampling = sampling;
        self
    }

    /// How many tokens of the prompt are fed at a time, 512 by default; 0 for all at once.
    pub fn prefill_chunk(mut self, tokens: usize) -> Self {
        self.chunk = tokens;
        self
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// An end token, or a stop text.
    Stop,
    /// The budget of tokens is spent.
    Length,
    /// The model's context is full.
    Context,
    /// The caller asked to stop.
    Cancelled,
    /// The computation failed.
    Error,
}

impl FinishReason {
    /// The word for it in `finish_reason` fields.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Context => "context",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// A running generation: an iterator of tokens, without the end token.
///
/// Dropping it early leaves the sequence with what it has seen.
pub struct Generation<'a> {
    engine: &'a Engine,
    sequence: &'a mut Sequence,
    chooser: Chooser,
    request: Request,
    /// The next token, submitted and not read.
    pending: Option<Array>,
    produced: usize,
    finished: Option<FinishReason>,
}

impl<'a> Generation<'a> {
    pub(super) fn start(
        engine: &'a Engine,
        sequence: &'a mut Sequence,
        prompt: &[u32],
        request: Request,
        progress: &mut dyn FnMut(PrefillProgress) -> bool,
    ) -> Result<Self> {
        let mut chooser = Chooser::new(request.sampling.clone(), prompt)?;
        let logits = prefill(engine, sequence, prompt, request.chunk, progress)?;
        let (pending, finished) = match request.max_tokens {
            0 => (None, Some(FinishReason::Length)),
            _ => (Some(submit(&mut chooser, &logits)?), None),
        };
        Ok(Self { engine, sequence, chooser, request, pending, produced: 0, finished })
    }

    /// Why it ended; `None` while it runs.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finished
    }

    fn step(&mut self) -> Result<Option<u32>> {
        let Some(current) = self.pending.take() else { return Ok(None) };
        let last_of_budget = self.produced + 1 == self.request.max_tokens;
        let context_full = self.sequence.cached() == self.engine.model().max_context();
        let ahead = !last_of_budget && !context_full;
        if ahead {
            self.pending = Some(self.submit_after(&current)?);
        }
        let token = current.item::<u32>()?;
        if ahead {
            self.sequence.seen.push(token);
        }
        if self.request.eos.contains(&token) {
            self.pending = None;
            self.finished = Some(FinishReason::Stop);
            return Ok(None);
        }
        self.produced += 1;
        if !ahead {
            self.finished = Some(if last_of_budget { FinishReason::Length } else { FinishReason::Context });
        }
        Ok(Some(token))
    }

    /// Submits the forward pass of a token that was not read yet, and the choice of the one after it.
    fn submit_after(&mut self, current: &Array) -> Result<Array> {
        let tokens = current.reshape((1, 1))?;
        let logits = self.engine.model().forward(&tokens, &mut self.sequence.caches, Logits::Last)?;
        submit(&mut self.chooser, &logits)
    }
}

fn submit(chooser: &mut Chooser, logits: &Array) -> Result<Array> {
    let token = chooser.choose(logits)?;
    oxmlx::async_eval(std::slice::from_ref(&token))?;
    Ok(token)
}

impl Iterator for Generation<'_> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished.is_some() {
            return None;
        }
        let stepped = self.step();
        if stepped.is_err() {
            self.pending = None;
            self.finished = Some(FinishReason::Error);
        }
        stepped.transpose()
    }
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        // The caches may hold a token that was submitted and never read, or a failed one: forget it. Trimming to fewer than the
        // caches hold can't fail.
        let seen = self.sequence.seen.len();
        let _ = self.sequence.truncate(seen);
    }
}

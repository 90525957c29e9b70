//! Sequences: what they want, and what the engine keeps of them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use oxmlx::Array;

use super::finish::{FinishReason, FinishRules, RepetitionLoop, StopRule};
use super::pool::CachePolicy;
use super::{Engine, StepBatch};
use crate::cache::Cache;
use crate::sampling::Rng;
use crate::{Error, ErrorKind, LanguageModel, Result, Sampler, SamplingParams};

/// A sequence of an engine. Numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub(super) u64);

impl fmt::Display for SequenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sequence {}", self.0)
    }
}

/// What a sequence wants.
#[must_use]
pub struct SequenceSpec {
    pub(super) max_tokens: usize,
    pub(super) sampling: SamplingParams,
    pub(super) eos: Vec<u32>,
    pub(super) stop: Option<Box<dyn StopRule>>,
    pub(super) repetition: Option<RepetitionLoop>,
    pub(super) cache: Option<CachePolicy>,
}

impl SequenceSpec {
    /// At most `max_tokens` tokens, the most likely one each time, to the end of the budget.
    pub fn new(max_tokens: usize) -> Self {
        let sampling = SamplingParams::greedy();
        Self { max_tokens, sampling, eos: Vec::new(), stop: None, repetition: None, cache: None }
    }

    /// How tokens are chosen.
    pub fn sampling(mut self, sampling: SamplingParams) -> Self {
        self.sampling = sampling;
        self
    }

    /// Tokens that end the text and are not part of it.
    pub fn eos(mut self, eos: &[u32]) -> Self {
        self.eos = eos.to_vec();
        self
    }

    /// A rule that sees each token and ends the text after it.
    pub fn stop(mut self, stop: impl StopRule + 'static) -> Self {
        self.stop = Some(Box::new(stop));
        self
    }

    /// Ends a text that goes round in circles.
    pub fn repetition(mut self, repetition: Option<RepetitionLoop>) -> Self {
        self.repetition = repetition;
        self
    }

    /// Which caches it gets, in place of the engine's choice.
    pub fn cache(mut self, cache: CachePolicy) -> Self {
        self.cache = Some(cache);
        self
    }
}

/// A row's sampler, which the graph's nodes share with the engine.
pub(super) type SharedSampler = Arc<Mutex<Sampled>>;

/// A sampler and the error that ended it.
pub(super) struct Sampled {
    pub(super) sampler: Sampler,
    pub(super) error: Option<Error>,
    /// The random numbers before each draw that was not read yet.
    pub(super) unread: VecDeque<Rng>,
}

impl Sampled {
    pub(super) fn shared(sampler: Sampler) -> SharedSampler {
        Arc::new(Mutex::new(Self { sampler, error: None, unread: VecDeque::new() }))
    }
}

/// Where a sequence stands.
#[derive(Debug)]
pub(super) enum State {
    /// Its prompt is not complete.
    Feeding {
        /// The logits of the last token that was fed, if it was the prompt's last one.
        logits: Option<Array>,
    },
    /// It decodes.
    Decoding,
    /// It ended.
    Finished(FinishReason),
}

/// What the engine keeps of a sequence.
pub(super) struct Row {
    pub(super) caches: Vec<Box<dyn Cache>>,
    pub(super) policy: Option<CachePolicy>,
    /// The prompt and the tokens that were emitted.
    pub(super) text: Vec<u32>,
    /// The length of the prompt.
    pub(super) prompt: usize,
    /// How many tokens the caches hold. More than `text` has while a token is on its way that was not read.
    pub(super) fed: usize,
    pub(super) state: State,
    pub(super) rules: FinishRules,
    /// None where the most likely token is taken.
    pub(super) sampler: Option<SharedSampler>,
}

impl Row {
    /// Tells the sampler what the text is: the prompt, then the tokens since as if it had chosen them.
    pub(super) fn begin_sampler(&mut self) -> Result<()> {
        let Some(shared) = &self.sampler else { return Ok(()) };
        let mut sampled = super::choose::lock(shared);
        sampled.sampler.begin(&self.text[..self.prompt]);
        self.text[self.prompt..].iter().try_for_each(|&token| sampled.sampler.push(token))
    }

    /// Forgets the last `n` tokens that were fed.
    pub(super) fn trim(&mut self, n: usize) -> Result<()> {
        if let Some(cache) = self.caches.iter().find(|cache| !cache.can_trim(n)) {
            let what = format!("a {} cache can't forget the last {n} of {} tokens", cache.kind(), cache.offset());
            return Err(Error::new(ErrorKind::Cache, what));
        }
        self.caches.iter_mut().try_for_each(|cache| cache.trim(n))?;
        self.fed -= n;
        Ok(())
    }

    /// How many tokens every layer can take and then forget; `None` for any number.
    pub(super) fn slack(&self) -> Option<usize> {
        self.caches.iter().filter_map(|cache| cache.slack()).min()
    }

    /// Takes back draws that nobody read: random numbers and history are as if they had not been. What is still to be computed of
    /// them draws from a sampler that is not the row's any more.
    pub(super) fn forget_draws(&mut self) -> Result<()> {
        let Some(shared) = &self.sampler else { return Ok(()) };
        let sampler = {
            let sampled = super::choose::lock(shared);
            let mut sampler = sampled.sampler.clone();
            sampled.unread.front().into_iter().for_each(|rng| sampler.set_rng(rng.clone()));
            sampler
        };
        self.sampler = Some(Sampled::shared(sampler));
        self.begin_sampler()
    }

    pub(super) fn error(&self) -> Option<Error> {
        self.sampler.as_ref().and_then(|shared| super::choose::lock(shared).error.take())
    }
}

impl<M: LanguageModel> Engine<M> {
    /// Opens a sequence that has seen nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when its caches can't be made.
    pub fn open(&mut self, spec: SequenceSpec) -> Result<SequenceId> {
        let caches = spec.cache.as_ref().unwrap_or(self.pool.policy()).make(&self.model)?;
        let id = SequenceId(self.next);
        self.next += 1;
        let policy = spec.cache.clone();
        let (rules, sampler) = self.rules(spec);
        let state = State::Feeding { logits: None };
        let row = Row { caches, policy, text: Vec::new(), prompt: 0, fed: 0, state, rules, sampler };
        self.rows.insert(id, row);
        Ok(id)
    }

    /// Gives a sequence that is not decoding new wishes; it keeps what it has seen, and its caches.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for one that is not open or has steps on their way.
    pub fn reopen(&mut self, id: SequenceId, spec: SequenceSpec) -> Result<()> {
        self.settle(id)?;
        let (rules, sampler) = self.rules(spec);
        let row = self.row_mut(id)?;
        (row.rules, row.sampler, row.state) = (rules, sampler, State::Feeding { logits: None });
        Ok(())
    }

    fn rules(&self, spec: SequenceSpec) -> (FinishRules, Option<SharedSampler>) {
        let SequenceSpec { max_tokens, sampling, eos, stop, repetition, .. } = spec;
        let max_context = self.model.max_context();
        let sampler = match sampling.is_greedy() {
            true => None,
            false => Some(Sampled::shared(Sampler::new(sampling))),
        };
        (FinishRules { eos, stop, max_tokens, max_context, repetition }, sampler)
    }

    /// Closes a sequence and frees its caches, in whatever state it is. False if it was not open: then nothing has happened.
    pub fn close(&mut self, id: SequenceId) -> bool {
        let known = self.rows.remove(&id).is_some();
        self.flights.iter_mut().for_each(|flight| flight.forget(id));
        self.drop_idle_flights();
        self.failed.retain(|(other, _)| *other != id);
        known
    }

    /// The prompt and the tokens that were emitted since.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open.
    pub fn text(&self, id: SequenceId) -> Result<&[u32]> {
        Ok(&self.row(id)?.text)
    }

    /// How many tokens of its text are in a sequence's caches.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub fn cached(&self, id: SequenceId) -> Result<usize> {
        let row = self.row(id)?;
        Ok(row.fed.min(row.text.len()))
    }

    /// The bytes that a sequence's caches take.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub fn cache_bytes(&self, id: SequenceId) -> Result<usize> {
        Ok(self.row(id)?.caches.iter().map(|cache| cache.bytes()).sum())
    }

    /// Why a sequence ended; `None` while it has not.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub fn finish_reason(&self, id: SequenceId) -> Result<Option<FinishReason>> {
        Ok(match self.row(id)?.state {
            State::Finished(reason) => Some(reason),
            _ => None,
        })
    }

    /// Ends a sequence for a reason of the caller's; it stays open, with what it has seen.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub fn finish(&mut self, id: SequenceId, reason: FinishReason) -> Result<()> {
        self.row_mut(id)?.state = State::Finished(reason);
        self.settle(id)
    }

    /// Forgets the last `n` tokens of a sequence's text, in its caches too. It decodes on from there when its prompt is fed to the
    /// end again ([`begin`](Self::begin)).
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open, [`ErrorKind::Cache`] when it has fewer tokens or its caches can't go
    /// back: it is then as before.
    pub fn unwind(&mut self, id: SequenceId, n: usize) -> Result<()> {
        self.settle(id)?;
        let row = self.row_mut(id)?;
        let Some(left) = row.text.len().checked_sub(n) else {
            let what = format!("{id} has {} tokens and can't forget {n}", row.text.len());
            return Err(Error::new(ErrorKind::Cache, what));
        };
        row.trim(row.fed.saturating_sub(left))?;
        row.text.truncate(left);
        row.prompt = row.prompt.min(left);
        row.state = State::Feeding { logits: None };
        Ok(())
    }

    /// Lets go of the steps of a row that were submitted and not read, and forgets the tokens that they fed.
    pub(super) fn settle(&mut self, id: SequenceId) -> Result<()> {
        self.failed.retain(|(other, _)| *other != id);
        let row = self.row_mut(id)?;
        // The last token of a row that decodes is fed by the step that is let go: it has to come again.
        let held = row.text.len().saturating_sub(usize::from(matches!(row.state, State::Decoding)));
        let ahead = row.fed.saturating_sub(held);
        if ahead > 0 && row.trim(ahead).is_err() {
            // A ring that has overwritten what it would go back to: the text can be fed anew.
            self.rebuild(id)?;
        }
        if self.flights.iter().any(|flight| flight.place(id).is_some()) {
            self.flights.iter_mut().for_each(|flight| flight.forget(id));
            self.drop_idle_flights();
            let row = self.row_mut(id)?;
            if let State::Decoding = row.state {
                row.forget_draws()?;
            }
        }
        Ok(())
    }

    /// As [`settle`](Self::settle), and feeds anew what a row that decodes lost by it.
    pub(super) fn pause(&mut self, id: SequenceId) -> Result<()> {
        self.settle(id)?;
        match self.row(id)?.state {
            State::Decoding => self.catch_up(id),
            _ => Ok(()),
        }
    }

    /// Gives a row empty caches: what it has seen must be fed again.
    pub(super) fn rebuild(&mut self, id: SequenceId) -> Result<()> {
        let policy = self.row(id)?.policy.clone();
        let caches = policy.as_ref().unwrap_or(self.pool.policy()).make(&self.model)?;
        let row = self.row_mut(id)?;
        (row.caches, row.fed) = (caches, 0);
        Ok(())
    }

    pub(super) fn row(&self, id: SequenceId) -> Result<&Row> {
        self.rows.get(&id).ok_or_else(|| unknown(id))
    }

    pub(super) fn row_mut(&mut self, id: SequenceId) -> Result<&mut Row> {
        self.rows.get_mut(&id).ok_or_else(|| unknown(id))
    }

    /// The rows that decode now, in the order in which they were opened.
    pub fn decoding(&self) -> StepBatch {
        let decodes = |(id, row): (&SequenceId, &Row)| matches!(row.state, State::Decoding).then_some(*id);
        let mut ids: Vec<SequenceId> = self.rows.iter().filter_map(decodes).collect();
        ids.sort_unstable();
        StepBatch::new(&ids)
    }
}

pub(super) fn unknown(id: SequenceId) -> Error {
    Error::new(ErrorKind::Sequence, format!("{id} is not open: it was closed, or is another engine's"))
}

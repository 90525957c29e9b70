//! Steps: one token of each row, submitted and read.

use oxmlx::{Array, Device, ops};

use super::choose::{FAILED, choose, lock};
use super::sequence::{Row, State};
use super::{Engine, FinishReason, SequenceId};
use crate::language_model::Logits;
use crate::{Error, ErrorKind, LanguageModel, Result};

/// The rows of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct StepBatch {
    ids: Vec<SequenceId>,
    tokens: Option<Vec<u32>>,
}

impl StepBatch {
    /// One token of each of these sequences: the one that it chose last.
    pub fn new(ids: &[SequenceId]) -> Self {
        Self { ids: ids.to_vec(), tokens: None }
    }

    /// Feeds these tokens, one a row, in place of those that were chosen last: the chosen ones leave the text, and steps on their way are
    /// let go. A row that ended takes none; one whose grammar does not allow its token fails alone.
    pub fn tokens(mut self, tokens: &[u32]) -> Self {
        self.tokens = Some(tokens.to_vec());
        self
    }

    /// The rows.
    pub fn ids(&self) -> &[SequenceId] {
        &self.ids
    }
}

/// What became of a row in a step.
#[derive(Debug)]
pub struct RowOutcome {
    /// The row.
    pub id: SequenceId,
    /// The token that it emits, if it does.
    pub token: Option<u32>,
    /// Why it ended, if it did.
    pub finish: Option<FinishReason>,
    /// What failed, for [`FinishReason::Error`].
    pub error: Option<Error>,
}

/// A step on its way.
pub(super) struct Flight {
    /// None where a row was let go.
    ids: Vec<Option<SequenceId>>,
    /// `[rows]` uint32.
    tokens: Array,
    /// Whether the computation was handed over.
    started: bool,
}

impl Flight {
    /// Hands the computation over. What goes wrong is told to who reads the tokens.
    fn start(&mut self) {
        self.started = self.started || oxmlx::async_eval(std::slice::from_ref(&self.tokens)).is_ok();
    }

    /// Lets a row go: nobody reads its token.
    pub(super) fn forget(&mut self, id: SequenceId) {
        self.ids.iter_mut().filter(|other| **other == Some(id)).for_each(|other| *other = None);
    }

    pub(super) fn place(&self, id: SequenceId) -> Option<usize> {
        self.ids.iter().position(|other| *other == Some(id))
    }
}

impl Row {
    /// Whether another forward pass may follow: its token is neither the last of the budget nor beyond the context.
    fn may_go_on(&self) -> bool {
        // Emitted, or chosen by a step that is on its way: each token that was fed past the prompt's last gives one.
        let made = (self.fed + 1).max(self.text.len()) - self.prompt;
        matches!(self.state, State::Decoding) && made < self.rules.max_tokens && self.fed < self.rules.max_context
    }
}

impl<M: LanguageModel> Engine<M> {
    /// Submits a step and reads it: gives one outcome a row, in the order of the batch; before it those of steps that were on their way, the
    /// oldest first.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn step(&mut self, batch: &StepBatch) -> Result<Vec<RowOutcome>> {
        self.submit(batch)?;
        let mut outcomes = Vec::new();
        while self.in_flight() {
            outcomes.extend(self.finish_rows()?);
        }
        outcomes.sort_by_key(|outcome| batch.ids.iter().position(|id| *id == outcome.id));
        Ok(outcomes)
    }

    /// Gives the next token of each row that decodes. With lookahead the step after it is submitted first, so that the device works while the
    /// host handles the tokens.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn advance(&mut self, batch: &StepBatch) -> Result<Vec<RowOutcome>> {
        if !self.lookahead {
            return self.step(batch);
        }
        if self.flights.is_empty() {
            self.submit(batch)?;
        }
        let oldest = self.flights.len();
        self.submit(batch)?;
        // Once at least: where no row could be fed there is nothing to read, and errors to tell of.
        let mut outcomes = self.finish_rows()?;
        for _ in 1..oldest {
            outcomes.extend(self.finish_rows()?);
        }
        outcomes.sort_by_key(|outcome| batch.ids.iter().position(|id| *id == outcome.id));
        Ok(outcomes)
    }

    /// Starts a step: one forward pass for the rows, and the choice of their next tokens, without waiting for either. Rows that
    /// ended are left out, and so are those whose budget or context the tokens on their way have spent.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a row that is not open, comes twice or whose prompt is not complete, and for another number of tokens than of
    /// rows: nothing has run then.
    pub fn submit(&mut self, batch: &StepBatch) -> Result<()> {
        self.check_batch(batch)?;
        if let Some(tokens) = &batch.tokens {
            for (&id, &token) in batch.ids.iter().zip(tokens) {
                self.settle(id)?;
                let row = self.row_mut(id)?;
                if !matches!(row.state, State::Decoding) {
                    continue;
                }
                if row.text.len() > row.prompt && row.text.len() > row.fed {
                    row.text.pop();
                }
                row.text.push(token);
                if let Err(error) = row.begin_sampler() {
                    self.fail_later(id, error);
                }
            }
        }
        let failed = |id: &SequenceId| self.failed.iter().any(|(other, _)| other == id);
        let goes = |id: &SequenceId| !failed(id) && self.rows.get(id).is_some_and(Row::may_go_on);
        let going: Vec<SequenceId> = batch.ids.iter().copied().filter(goes).collect();
        let mut ready = Vec::with_capacity(going.len());
        for id in going {
            match self.catch_up(id) {
                Ok(()) => ready.push(id),
                Err(error) => self.fail_later(id, error),
            }
        }
        // Where it fails, somebody's row can't be fed: each alone finds out whose.
        if ready.is_empty() || self.together(&ready) && self.launch(&ready).is_ok() {
            return Ok(());
        }
        for id in ready {
            if let Err(error) = self.catch_up(id).and_then(|()| self.launch(&[id])) {
                self.fail_later(id, error);
            }
        }
        Ok(())
    }

    /// Reads the oldest step and gives its rows' tokens. Nothing on its way: no outcomes. A row that could not be fed is told of once its
    /// tokens of earlier steps are read.
    ///
    /// # Errors
    /// Only what every entry into MLX can report; what a row's computation reports is in its outcome.
    pub fn finish_rows(&mut self) -> Result<Vec<RowOutcome>> {
        let mut outcomes: Vec<RowOutcome> = Vec::new();
        let flies = |(id, _): &(SequenceId, Error)| self.flights.iter().any(|flight| flight.place(*id).is_some());
        let (waiting, told) = std::mem::take(&mut self.failed).into_iter().partition(flies);
        self.failed = waiting;
        for (id, error) in told {
            outcomes.push(self.take(id, Err(error)));
        }
        let Some(flight) = self.flights.pop_front() else { return Ok(outcomes) };
        let read = flight.tokens.to_vec::<u32>();
        if let Some(next) = self.flights.front_mut() {
            next.start();
        }
        match read {
            Ok(tokens) => {
                for (id, token) in flight.ids.into_iter().zip(tokens) {
                    if let Some(id) = id {
                        outcomes.push(self.take(id, Ok(token)));
                    }
                }
            }
            Err(_) => {
                let ids: Vec<SequenceId> = flight.ids.into_iter().flatten().collect();
                for id in ids {
                    let token = self.again_alone(id);
                    outcomes.push(self.take(id, token));
                }
            }
        }
        Ok(outcomes)
    }

    /// Whether a step is on its way.
    pub fn in_flight(&self) -> bool {
        !self.flights.is_empty() || !self.failed.is_empty()
    }

    fn check_batch(&self, batch: &StepBatch) -> Result<()> {
        let wrong = |what: String| Err(Error::new(ErrorKind::Sequence, what));
        if let Some(tokens) = batch.tokens.as_ref().filter(|tokens| tokens.len() != batch.ids.len()) {
            return wrong(format!("{} tokens for a step of {} rows", tokens.len(), batch.ids.len()));
        }
        let vocab = self.model.vocab_size();
        if let Some(token) = batch.tokens.iter().flatten().find(|token| **token as usize >= vocab) {
            return wrong(format!("token {token} is outside the vocabulary of {vocab}"));
        }
        for (i, id) in batch.ids.iter().enumerate() {
            if let State::Feeding { .. } = self.row(*id)?.state {
                return wrong(format!("{id}: its prompt is not complete"));
            }
            if batch.ids[..i].contains(id) {
                return wrong(format!("{id} comes twice in one step"));
            }
        }
        Ok(())
    }

    /// Feeds what a row's caches lack of its text, but for the last token: they were made anew.
    pub(super) fn catch_up(&mut self, id: SequenceId) -> Result<()> {
        const PIECE: usize = 512;
        loop {
            let row = self.row(id)?;
            let Some(lacking) = row.text.len().checked_sub(row.fed + 1).filter(|n| *n > 0) else { return Ok(()) };
            let piece = row.text[row.fed..row.fed + lacking.min(PIECE)].to_vec();
            let tokens = Array::from_slice(&piece, (1, piece.len() as i32))?;
            self.forward(&[id], &tokens, Logits::Last)?;
            let arrays: Vec<Array> = self.row(id)?.caches.iter().flat_map(|cache| cache.arrays()).collect();
            oxmlx::eval(&arrays)?;
        }
    }

    /// One pass for these rows, and the choice of their tokens.
    fn launch(&mut self, ids: &[SequenceId]) -> Result<()> {
        let inputs = self.inputs(ids)?;
        let logits = self.forward(ids, &inputs, Logits::Last)?;
        let mut samplers = Vec::with_capacity(ids.len());
        for &id in ids {
            samplers.push(self.row(id)?.sampler.clone());
        }
        match choose(&samplers, &logits) {
            Ok(tokens) => {
                let mut flight = Flight { ids: ids.iter().copied().map(Some).collect(), tokens, started: false };
                // On the CPU the graph is built ahead and no more: caches are written in place once nothing that runs reads them, and
                // the host's part of a step is short beside a copy of the caches.
                if self.flights.is_empty() || Device::current()? == Device::Gpu {
                    flight.start();
                }
                self.flights.push_back(flight);
                Ok(())
            }
            Err(error) => {
                for &id in ids {
                    if self.row_mut(id)?.trim(1).is_err() {
                        self.rebuild(id)?;
                    }
                }
                Err(error)
            }
        }
    }

    /// The tokens to feed, `[rows, 1]`: known ones, or those of the step that is on its way.
    fn inputs(&self, ids: &[SequenceId]) -> Result<Array> {
        let n = ids.len() as i32;
        let mut known = Vec::with_capacity(ids.len());
        for &id in ids {
            let row = self.row(id)?;
            known.push(row.text.get(row.fed).copied());
        }
        if let Some(known) = known.iter().copied().collect::<Option<Vec<u32>>>() {
            return Ok(Array::from_slice(&known, (n, 1))?);
        }
        if let Some(last) = self.flights.back()
            && last.ids.iter().copied().eq(ids.iter().copied().map(Some))
        {
            return Ok(last.tokens.reshape((n, 1))?);
        }
        let mut parts = Vec::with_capacity(ids.len());
        for (&id, known) in ids.iter().zip(known) {
            let flying = self.flights.iter().rev().find_map(|flight| Some((flight, flight.place(id)? as i32)));
            parts.push(match (known, flying) {
                (Some(token), _) => Array::from_slice(&[token], 1)?,
                (None, Some((flight, place))) => ops::slice(&flight.tokens, &[place], &[place + 1], &[1])?,
                (None, None) => {
                    return Err(Error::new(ErrorKind::Sequence, format!("{id} has no token to go on with")));
                }
            });
        }
        Ok(ops::concatenate(&parts, 0)?.reshape((n, 1))?)
    }

    /// Takes a row's token: its rules decide what becomes of it. One that ended lets go of what is on its way.
    pub(super) fn take(&mut self, id: SequenceId, token: Result<u32>) -> RowOutcome {
        let mut outcome = RowOutcome { id, token: None, finish: None, error: None };
        let Some(row) = self.rows.get_mut(&id) else {
            outcome.finish = Some(FinishReason::Cancelled);
            return outcome;
        };
        if let (Ok(_), Some(sampler)) = (&token, &row.sampler) {
            lock(sampler).unread.pop_front();
        }
        let taken = match token {
            Ok(FAILED) => {
                let missing = || Error::new(ErrorKind::Sampling, "the sampler gave no token");
                Err(row.error().unwrap_or_else(missing))
            }
            Ok(token) => row.rules.take(&mut row.text, row.prompt, token).map(|taken| (token, taken)),
            Err(error) => Err(error),
        };
        match taken {
            Ok((token, taken)) => {
                outcome.token = taken.emitted.then_some(token);
                outcome.finish = taken.finish;
            }
            Err(error) => {
                outcome.finish = Some(FinishReason::Error);
                outcome.error = Some(error);
            }
        }
        if let Some(reason) = outcome.finish {
            row.state = State::Finished(reason);
            if let Err(error) = self.settle(id) {
                outcome.error.get_or_insert(error);
            }
        }
        outcome
    }

    /// After a step failed as a whole: feeds the row's text to fresh caches and chooses its token, alone.
    fn again_alone(&mut self, id: SequenceId) -> Result<u32> {
        self.flights.iter_mut().for_each(|flight| flight.forget(id));
        self.drop_idle_flights();
        self.row_mut(id)?.forget_draws()?;
        self.rebuild(id)?;
        self.catch_up(id)?;
        let inputs = self.inputs(&[id])?;
        let logits = self.forward(&[id], &inputs, Logits::Last)?;
        let tokens = choose(&[self.row(id)?.sampler.clone()], &logits)?;
        Ok(tokens.to_vec::<u32>()?[0])
    }

    /// Notes an error that the next [`finish_rows`](Self::finish_rows) tells of.
    fn fail_later(&mut self, id: SequenceId, error: Error) {
        self.failed.push((id, error));
    }

    /// Drops steps that nobody waits for.
    pub(super) fn drop_idle_flights(&mut self) {
        let rows = &self.rows;
        self.flights.retain(|flight| flight.ids.iter().flatten().any(|id| rows.contains_key(id)));
    }
}

//! One sequence at a time: what a command line needs of an engine.

use std::collections::VecDeque;

use super::prefill::{PrefillOptions, PrefillStep};
use super::sequence::SequenceSpec;
use super::verify::DraftedRow;
use super::{Engine, FinishReason, SequenceId, StepBatch};
use crate::speculative::{Acceptance, DraftStats, Drafter};
use crate::{Error, ErrorKind, LanguageModel, Result, SamplingParams};

/// What to generate.
#[must_use]
pub struct Request {
    spec: SequenceSpec,
    options: PrefillOptions,
    speculation: Option<(Box<dyn Drafter>, usize, Option<Acceptance>)>,
}

/// Who drafts, how many tokens at a time, and by which rule they stand.
struct Speculation {
    drafter: Box<dyn Drafter>,
    most: usize,
    rule: Acceptance,
    stats: DraftStats,
}

impl Request {
    /// At most `max_tokens` tokens, until one of `eos` comes.
    pub fn new(max_tokens: usize, eos: &[u32]) -> Self {
        Self { spec: SequenceSpec::new(max_tokens).eos(eos), options: PrefillOptions::default(), speculation: None }
    }

    /// What a sequence of [`GenerationPolicy`](super::GenerationPolicy) or of one's own wants.
    pub fn of(spec: SequenceSpec) -> Self {
        Self { spec, options: PrefillOptions::default(), speculation: None }
    }

    /// How tokens are chosen; the most likely one by default.
    pub fn sampling(mut self, sampling: SamplingParams) -> Self {
        self.spec = self.spec.sampling(sampling);
        self
    }

    /// Looks at up to `most` tokens of `drafter`'s in one pass. Where no rule is given it is the one that gives what would be given without:
    /// greedy, or sampler-match.
    pub fn speculate(mut self, drafter: impl Drafter + 'static, most: usize, rule: Option<Acceptance>) -> Self {
        self.speculation = Some((Box::new(drafter), most, rule));
        self
    }

    /// How many tokens of the prompt are fed at a time, 512 by default; 0 for all at once.
    pub fn prefill_chunk(mut self, tokens: usize) -> Self {
        self.options = self.options.chunk(tokens);
        self
    }
}

/// How far a prompt has been fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillProgress {
    /// Tokens done, those that the sequence had seen already included.
    pub done: usize,
    /// Tokens of the prompt.
    pub total: usize,
}

/// An engine with one sequence, which remembers what it has seen from one generation to the next.
pub struct DirectEngine<M = Box<dyn LanguageModel>> {
    engine: Engine<M>,
    row: Option<SequenceId>,
}

impl<M: LanguageModel> DirectEngine<M> {
    /// An engine on this model.
    pub fn new(model: M) -> Self {
        Self::on(Engine::new(model))
    }

    /// One sequence of this engine.
    pub fn on(engine: Engine<M>) -> Self {
        Self { engine, row: None }
    }

    /// The engine below.
    pub fn engine(&self) -> &Engine<M> {
        &self.engine
    }

    /// The engine below, and the sequence, once there is one.
    pub fn parts(&mut self) -> (&mut Engine<M>, Option<SequenceId>) {
        (&mut self.engine, self.row)
    }

    /// The tokens that the sequence has seen.
    pub fn tokens(&self) -> &[u32] {
        let Some(row) = self.row.and_then(|id| self.engine.row(id).ok()) else { return &[] };
        &row.text[..row.fed.min(row.text.len())]
    }

    /// Forgets what was seen.
    pub fn reset(&mut self) {
        if let Some(id) = self.row.take() {
            self.engine.close(id);
        }
    }

    /// Feeds `prompt` and starts to generate. `progress` is called before the first piece and after each, and while one is computed; false
    /// cancels.
    ///
    /// What the sequence has seen already and the prompt begins with is not computed again; what it has seen beyond that is
    /// forgotten. So a chat passes its whole history each time.
    ///
    /// # Errors
    /// [`ErrorKind::Prompt`](crate::ErrorKind::Prompt) for an empty prompt or a token outside the vocabulary,
    /// [`ErrorKind::Context`](crate::ErrorKind::Context) when it is longer than the model's context,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when `progress` said so; what the computation reports.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        request: Request,
        progress: &mut dyn FnMut(PrefillProgress) -> bool,
    ) -> Result<Generation<'_, M>> {
        let Request { spec, options, speculation } = request;
        let own = if spec.sampling.temperature() == 0.0 { Acceptance::Greedy } else { Acceptance::SamplerMatch };
        let speculation = speculation.map(|(drafter, most, rule)| {
            let (rule, stats) = (rule.unwrap_or(own), DraftStats::default());
            Speculation { drafter, most, rule, stats }
        });
        let id = match self.row {
            Some(id) => {
                self.engine.reopen(id, spec)?;
                id
            }
            None => *self.row.insert(self.engine.open(spec)?),
        };
        if let Some(speculation) = &speculation {
            self.engine.check_speculation(id, speculation.most, speculation.rule)?;
        }
        let plan = self.engine.begin(id, prompt, options)?;
        let total = prompt.len();
        let mut done = plan.adopted();
        let cancelled = || Err(Error::new(ErrorKind::Cancelled, "cancelled while the prompt was read"));
        if !progress(PrefillProgress { done, total }) {
            return cancelled();
        }
        for piece in plan.pieces() {
            let step = PrefillStep::new(id, piece);
            self.engine.prefill_while(step, &mut || progress(PrefillProgress { done, total }))?;
            done = piece.tokens.end;
            if !progress(PrefillProgress { done, total }) {
                return cancelled();
            }
        }
        let engine = &mut self.engine;
        Ok(Generation { engine, id, begun: false, finished: None, speculation, ready: VecDeque::new(), ending: None })
    }
}

/// A running generation: an iterator of tokens, without the end token.
///
/// Dropping it early leaves the sequence with what it has seen.
pub struct Generation<'a, M: LanguageModel = Box<dyn LanguageModel>> {
    engine: &'a mut Engine<M>,
    id: SequenceId,
    begun: bool,
    finished: Option<FinishReason>,
    speculation: Option<Speculation>,
    /// Tokens of a round that were not given yet, and how the round ended.
    ready: VecDeque<u32>,
    ending: Option<FinishReason>,
}

impl<M: LanguageModel> Generation<'_, M> {
    /// Why it ended; `None` while it runs. It is known with the last token.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finished
    }

    /// How good the drafts were, where there are some.
    pub fn draft_stats(&self) -> Option<DraftStats> {
        self.speculation.as_ref().map(|speculation| speculation.stats)
    }

    fn step(&mut self) -> Result<Option<u32>> {
        if self.begun && self.speculation.is_some() {
            return self.round();
        }
        let outcome = if self.begun {
            let mut outcomes = self.engine.advance(&StepBatch::new(&[self.id]))?;
            outcomes.pop().ok_or_else(|| Error::new(ErrorKind::Sequence, format!("{} gave no token", self.id)))?
        } else {
            self.begun = true;
            self.engine.complete_prefill(self.id)?
        };
        self.finished = outcome.finish;
        outcome.error.map_or(Ok(outcome.token), Err)
    }

    /// The next token of the round at hand, or of another one.
    fn round(&mut self) -> Result<Option<u32>> {
        if let (true, Some(speculation)) = (self.ready.is_empty() && self.ending.is_none(), &mut self.speculation) {
            let draft = speculation.drafter.draft(self.engine.text(self.id)?, speculation.most)?;
            let row = DraftedRow { id: self.id, draft, rule: speculation.rule };
            let outcome = self.engine.verify_round(&[row])?.pop();
            let outcome =
                outcome.ok_or_else(|| Error::new(ErrorKind::Sequence, format!("{} gave nothing", self.id)))?;
            speculation.stats.add(&outcome.verdict);
            if let Some(error) = outcome.error {
                return Err(error);
            }
            self.ready.extend(outcome.tokens);
            self.ending = outcome.finish;
        }
        let token = self.ready.pop_front();
        if self.ready.is_empty() {
            self.finished = self.ending;
        }
        Ok(token)
    }
}

impl<M: LanguageModel> Iterator for Generation<'_, M> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished.is_some() {
            return None;
        }
        let stepped = self.step();
        if stepped.is_err() {
            self.finished = Some(FinishReason::Error);
        }
        stepped.transpose()
    }
}

impl<M: LanguageModel> Drop for Generation<'_, M> {
    fn drop(&mut self) {
        // What is on its way is let go; a row that is gone needs nothing.
        let _ = self.engine.finish(self.id, self.finished.unwrap_or(FinishReason::Cancelled));
    }
}

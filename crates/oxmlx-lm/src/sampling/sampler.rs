//! The sampler: the stages in their order over one row, and what it remembers from row to row.

use super::draw::draw;
use super::grammar::GrammarState;
use super::history::Tally;
use super::mirostat::Mirostat;
use super::order::Stage;
use super::params::SamplingParams;
use super::rng::{Rng, fresh_seed};
use super::row::{Candidate, Row, first_of, largest, sum};
use super::{min_p, temperature, top_k, top_n_sigma, top_p, typical_p};
use crate::Result;

/// Chooses tokens; one a sequence, so that each sequence draws as if it were alone.
///
/// It keeps the history that penalties look at: [`begin`](Self::begin) with the prompt, then every token that
/// [`sample`](Self::sample) chose or [`push`](Self::push) was told.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    plan: Vec<Stage>,
    seed: u64,
    rng: Rng,
    row: Row,
    history: Vec<u32>,
    repeated: Option<Tally>,
    counted: Option<Tally>,
    bar: f32,
    grammar: Option<GrammarState>,
}

impl Sampler {
    /// A sampler at the start of its stream of random numbers, with an empty history.
    pub fn new(params: SamplingParams) -> Self {
        let seed = params.seed().unwrap_or_else(fresh_seed);
        Self {
            plan: params.plan(),
            seed,
            rng: Rng::new(seed),
            row: Row::default(),
            history: Vec::new(),
            repeated: params.repetition.map(|r| Tally::new(r.window)),
            counted: params.frequency_presence.map(|f| Tally::new(f.window)),
            bar: params.mirostat.map_or(0.0, |m| m.start()),
            grammar: params.grammar.as_ref().map(GrammarState::new),
            params,
        }
    }

    /// What it was told.
    pub fn params(&self) -> &SamplingParams {
        &self.params
    }

    /// The seed in use, chosen by chance if none was set; a sampler with it draws the same.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The prompt and the tokens since.
    pub fn history(&self) -> &[u32] {
        &self.history
    }

    /// Starts a text anew after `prompt`: history, grammar and Mirostat's bar are as at first. The random numbers go on.
    pub fn begin(&mut self, prompt: &[u32]) {
        let rng = self.rng.clone();
        *self = Self { seed: self.seed, rng, row: std::mem::take(&mut self.row), ..Self::new(self.params.clone()) };
        prompt.iter().for_each(|&token| self.remember(token));
    }

    /// The random numbers that are to come.
    pub(crate) fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Draws from these random numbers from now on.
    pub(crate) fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Adds a token that was chosen elsewhere.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for a token that the grammar does not allow here.
    pub fn push(&mut self, token: u32) -> Result<()> {
        if let Some(grammar) = &mut self.grammar {
            grammar.push(token)?;
        }
        self.remember(token);
        Ok(())
    }

    fn remember(&mut self, token: u32) {
        self.history.push(token);
        for tally in [&mut self.repeated, &mut self.counted].into_iter().flatten() {
            tally.moved(&self.history);
        }
    }

    /// Chooses the next token from its `logits`, one for each id, and adds it to the history. A greedy choice uses no random number,
    /// any other uses one, and XTC one more. Of equally probable tokens greedy takes the lowest id. -inf stands for a token that must
    /// not come.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) if the row is empty, holds NaN or +inf, or every token is ruled out. The
    /// history is then as before.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32> {
        let largest = largest(logits)?;
        let token = if self.params.is_greedy() {
            first_of(logits, largest)
        } else if self.params.chooses_best() {
            self.edit(logits, largest)?;
            self.row.best()?
        } else {
            let exclude = self.params.xtc.as_ref().is_some_and(|x| !x.is_off())
                && self.rng.next_f64() < f64::from(self.params.xtc.as_ref().map_or(0.0, |x| x.probability));
            let at = self.rng.next_f64();
            let list = self.filter(logits, largest, exclude)?;
            let Some((token, probability)) = draw(list, at) else { return self.row.best() };
            if let Some(mirostat) = self.params.mirostat {
                self.bar = mirostat.moved(self.bar, probability);
            }
            token
        };
        self.push(token)?;
        Ok(token)
    }

    /// What [`Sampler::sample`] draws from: ids, ascending, with their probabilities, which are above 0 and sum up to 1. With XTC the
    /// two distributions with and without its exclusion are mixed, as chance would. Uses no random number and changes nothing.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn distribution(&mut self, logits: &[f32]) -> Result<Vec<(u32, f32)>> {
        let largest = largest(logits)?;
        if self.params.chooses_best() {
            self.edit(logits, largest)?;
            return Ok(vec![(self.row.best()?, 1.0)]);
        }
        let plain = shares(self.filter(logits, largest, false)?);
        let Some(share) = self.params.xtc.as_ref().filter(|x| !x.is_off()).map(|x| f64::from(x.probability)) else {
            return Ok(plain.into_iter().map(|(id, p)| (id, p as f32)).filter(|c| c.1 > 0.0).collect());
        };
        let mut mixed: std::collections::BTreeMap<u32, f64> =
            plain.into_iter().map(|(id, p)| (id, p * (1.0 - share))).collect();
        for (id, p) in shares(self.filter(logits, largest, true)?) {
            *mixed.entry(id).or_default() += p * share;
        }
        Ok(mixed.into_iter().map(|(id, p)| (id, p as f32)).filter(|c| c.1 > 0.0).collect())
    }

    /// The next of its random numbers, in `0.0..1.0`.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.rng.next_f64()
    }

    /// Loads the row and takes out what is ruled out for good.
    fn load(&mut self, logits: &[f32], largest: f32) -> Result<()> {
        self.row.load(logits, largest);
        if let Some(grammar) = &mut self.grammar {
            self.row.keep_allowed(grammar.allowed()?);
        }
        self.params.suppression.apply(&mut self.row);
        Ok(())
    }

    /// The row after biases and penalties alone.
    fn edit(&mut self, logits: &[f32], largest: f32) -> Result<()> {
        self.load(logits, largest)?;
        for at in 0..self.plan.len() {
            let stage = self.plan[at];
            if !stage.is_filter() && stage != Stage::Temperature {
                self.apply(at, false)?;
            }
        }
        Ok(())
    }

    /// The candidates after all stages, with their weights.
    fn filter(&mut self, logits: &[f32], largest: f32, exclude: bool) -> Result<&[Candidate]> {
        self.load(logits, largest)?;
        for at in 0..self.plan.len() {
            self.apply(at, exclude)?;
        }
        if self.params.mirostat.is_some() {
            Mirostat::apply(&mut self.row, self.bar)?;
        }
        self.row.weighed()
    }

    /// Applies the stage at this place of the plan.
    fn apply(&mut self, at: usize, exclude: bool) -> Result<()> {
        let (params, row) = (&self.params, &mut self.row);
        match self.plan[at] {
            Stage::LogitBias => params.logit_bias.apply(row),
            Stage::LanguageBias => params.language_bias.iter().for_each(|bias| bias.apply(row)),
            Stage::Repetition => {
                params.repetition.iter().zip(&self.repeated).for_each(|(r, tally)| r.apply(tally, row));
            }
            Stage::Dry => params.dry.iter().for_each(|dry| dry.apply(&self.history, row)),
            Stage::FrequencyPresence => {
                params.frequency_presence.iter().zip(&self.counted).for_each(|(f, tally)| f.apply(tally, row));
            }
            Stage::TopNSigma => top_n_sigma::top_n_sigma(row, params.top_n_sigma)?,
            Stage::TopK => top_k::top_k(row, params.top_k()),
            Stage::TypicalP => typical_p::typical_p(row, params.typical_p)?,
            Stage::TopP => top_p::top_p(row, params.top_p())?,
            Stage::MinP => min_p::min_p(row, params.min_p())?,
            Stage::Xtc => {
                if let Some(xtc) = params.xtc.as_ref().filter(|_| exclude) {
                    xtc.apply(row)?;
                }
            }
            Stage::Temperature => {
                let plain = params.temperature();
                let t = match &params.dynamic {
                    Some(dynamic) if !dynamic.is_off() => dynamic.of(row, plain)?,
                    _ => plain,
                };
                // Of all stages this one alone sees whether a logit is above 0.
                temperature::heat(row, t, self.plan[at..].contains(&Stage::Repetition))?;
            }
        }
        Ok(())
    }
}

/// The candidates' probabilities.
fn shares(list: &[Candidate]) -> Vec<(u32, f64)> {
    let total = sum(list);
    list.iter().filter(|c| c.weight > 0.0).map(|c| (c.id, f64::from(c.weight) / total)).collect()
}

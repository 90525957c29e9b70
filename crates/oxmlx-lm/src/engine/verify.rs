//! Rounds of speculative decoding: several rows look at their drafts, those of one length in one pass.

use std::collections::BTreeMap;

use oxmlx::{Array, ops};

use super::finish::FinishReason;
use super::sequence::State;
use super::{Engine, SequenceId, choose};
use crate::language_model::Logits;
use crate::speculative::{Acceptance, Draft, Verdict, check_rewind};
use crate::{Error, ErrorKind, LanguageModel, Result, Sampler, SamplingParams};

/// A row and what was drafted for it.
#[derive(Clone, Debug)]
pub struct DraftedRow {
    /// The row, which decodes.
    pub id: SequenceId,
    /// Tokens that may follow its text. Those beyond its budget or the model's context are not looked at.
    pub draft: Draft,
    /// By which rule they stand.
    pub rule: Acceptance,
}

/// What became of a row in a round.
#[derive(Debug)]
pub struct RoundOutcome {
    /// The row.
    pub id: SequenceId,
    /// The tokens that it emits, in order.
    pub tokens: Vec<u32>,
    /// Why it ended, if it did.
    pub finish: Option<FinishReason>,
    /// What failed, for [`FinishReason::Error`].
    pub error: Option<Error>,
    /// What became of its draft.
    pub verdict: Verdict,
}

impl<M: LanguageModel> Engine<M> {
    /// Feeds each row its last token and its draft, and emits the drafted tokens that stand and one of the row's own. Afterwards the caches hold
    /// what stands, and nothing else. One outcome a row, in their order.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a row that is not open, does not decode or comes twice, [`ErrorKind::Cache`] for caches that can't go back, and
    /// [`ErrorKind::Sampling`] for a rule that does not go with the row's sampler: nothing has run then. What a row's computation
    /// reports is in its outcome.
    pub fn verify_round(&mut self, rows: &[DraftedRow]) -> Result<Vec<RoundOutcome>> {
        let mut drafts = Vec::with_capacity(rows.len());
        for (i, DraftedRow { id, draft, rule }) in rows.iter().enumerate() {
            let row = self.row(*id)?;
            if !matches!(row.state, State::Decoding) || rows[..i].iter().any(|other| other.id == *id) {
                let what = format!("{id} does not decode, or comes twice in one round");
                return Err(Error::new(ErrorKind::Sequence, what));
            }
            self.check_speculation(*id, draft.len(), *rule)?;
            let vocab = self.model.vocab_size();
            if let Some(token) = draft.tokens().iter().find(|token| **token as usize >= vocab) {
                let what = format!("{id}: drafted token {token} is outside the vocabulary of {vocab}");
                return Err(Error::new(ErrorKind::Prompt, what));
            }
            let mut draft = draft.clone();
            let budget = row.rules.max_tokens.saturating_sub(row.text.len() - row.prompt + 1);
            let context = row.rules.max_context.saturating_sub(row.text.len());
            draft.truncate(budget.min(context));
            drafts.push(draft);
        }
        // Rows that feed equally many tokens share a pass.
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, (row, draft)) in rows.iter().zip(&drafts).enumerate() {
            self.settle(row.id)?;
            by_length.entry(draft.len()).or_default().push(i);
        }
        let mut outcomes: Vec<Option<RoundOutcome>> = (0..rows.len()).map(|_| None).collect();
        for group in by_length.into_values() {
            let ids: Vec<SequenceId> = group.iter().map(|&i| rows[i].id).collect();
            let together = self.together(&ids);
            let looked = if together { self.look(&ids, &pick(&drafts, &group)).ok() } else { None };
            for (at, &i) in group.iter().enumerate() {
                let (id, draft) = (rows[i].id, &drafts[i]);
                // Alone where the pass of all failed: then it is known whose it is.
                let values = match &looked {
                    Some(values) => Ok(values[at].clone()),
                    None => self.look(&[id], &[draft]).map(|mut values| values.swap_remove(0)),
                };
                outcomes[i] = Some(self.judge(id, draft, rows[i].rule, values)?);
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Whether a sequence's caches can go back by `drafted` tokens and its sampler goes with `rule`: asked before anything runs.
    ///
    /// # Errors
    /// As [`verify_round`](Self::verify_round).
    pub fn check_speculation(&self, id: SequenceId, drafted: usize, rule: Acceptance) -> Result<()> {
        let row = self.row(id)?;
        match &row.sampler {
            Some(sampler) => rule.check(&choose::lock(sampler).sampler)?,
            None => rule.check(&greedy())?,
        }
        check_rewind(&row.caches, drafted)
    }

    /// The logits before each drafted token and after the last, row by row of `[drafted + 1, vocabulary]`. The rows have the tokens then.
    fn look(&mut self, ids: &[SequenceId], drafts: &[&Draft]) -> Result<Vec<Vec<f32>>> {
        let mut tokens: Vec<u32> = Vec::new();
        for (&id, draft) in ids.iter().zip(drafts) {
            self.catch_up(id)?;
            tokens.extend(self.row(id)?.text.last());
            tokens.extend(draft.tokens());
        }
        let fed = tokens.len() / ids.len();
        let input = Array::from_slice(&tokens, (ids.len() as i32, fed as i32))?;
        let wanted = if fed == 1 { Logits::Last } else { Logits::All };
        let logits = self.forward(ids, &input, wanted)?;
        match ops::contiguous(&logits, false).and_then(|logits| logits.to_vec::<f32>()) {
            Ok(values) => Ok(values.chunks_exact(values.len() / ids.len()).map(<[f32]>::to_vec).collect()),
            Err(error) => {
                for &id in ids {
                    self.rebuild(id)?;
                }
                Err(error.into())
            }
        }
    }

    /// Judges a row's draft, lets the caches forget what fell, and takes the tokens one by one.
    fn judge(
        &mut self,
        id: SequenceId,
        draft: &Draft,
        rule: Acceptance,
        values: Result<Vec<f32>>,
    ) -> Result<RoundOutcome> {
        let vocab = self.model.vocab_size().max(1);
        let row = self.row_mut(id)?;
        let eos = row.rules.eos.clone();
        let ends = |token: u32| eos.contains(&token);
        let judged = values.and_then(|values| {
            let logits: Vec<&[f32]> = values.chunks_exact(vocab).collect();
            match &row.sampler {
                Some(sampler) => rule.judge(draft, &logits, &mut choose::lock(sampler).sampler, &ends),
                None => rule.judge(draft, &logits, &mut greedy(), &ends),
            }
        });
        let mut outcome =
            RoundOutcome { id, tokens: Vec::new(), finish: None, error: None, verdict: Verdict::default() };
        match judged {
            Ok(verdict) => {
                row.trim(draft.len() - verdict.accepted)?;
                for &token in &verdict.tokens {
                    let taken = self.take(id, Ok(token));
                    outcome.tokens.extend(taken.token);
                    (outcome.finish, outcome.error) = (taken.finish, taken.error);
                    if outcome.finish.is_some() {
                        break;
                    }
                }
                outcome.verdict = verdict;
            }
            Err(error) => {
                let taken = self.take(id, Err(error));
                (outcome.finish, outcome.error) = (taken.finish, taken.error);
            }
        }
        Ok(outcome)
    }
}

fn pick<'a>(drafts: &'a [Draft], group: &[usize]) -> Vec<&'a Draft> {
    group.iter().map(|&i| &drafts[i]).collect()
}

/// What chooses where a row has no sampler.
fn greedy() -> Sampler {
    Sampler::new(SamplingParams::greedy())
}

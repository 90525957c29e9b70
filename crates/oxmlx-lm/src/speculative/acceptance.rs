//! How many of the drafted tokens stand.

use super::{Draft, DraftStats};
use crate::{Error, ErrorKind, Result, Sampler};

/// The rule by which drafted tokens stand or fall.
///
/// | rule | guarantee |
/// |---|---|
/// | [`Greedy`](Self::Greedy) | token for token what greedy decoding without drafts gives, penalties and grammar included |
/// | [`SamplerMatch`](Self::SamplerMatch) | token for token what sampling without drafts gives with the same seed |
/// | [`Rejection`](Self::Rejection) | the distribution of sampling without drafts; other tokens than without for one seed |
///
/// All of it for equal logits: a pass over several tokens may round differently from passes over one, so that a near-tie can fall to
/// the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acceptance {
    /// A draft stands where it is the token that the greedy sampler chooses there.
    Greedy,
    /// The sampler draws at each place as it would without drafts; a draft stands where it is what was drawn. Never wrong, and the
    /// choice for drafts that were not drawn.
    SamplerMatch,
    /// A draft stands with the probability min(1, p/q), p being its share in what the sampler draws from and q that in what it was drawn
    /// from; in place of one that falls comes a draw from what p has more than q. More drafts stand than by matching where they were
    /// drawn from a distribution near the model's.
    ///
    /// # Source
    /// Leviathan et al., Fast inference from transformers via speculative decoding, 2023.
    Rejection,
}

impl Acceptance {
    /// The rule for a sampler whose choice is, or is not, a matter of chance.
    pub fn default_for(sampler: &Sampler) -> Self {
        if sampler.params().temperature() == 0.0 { Self::Greedy } else { Self::SamplerMatch }
    }

    /// Whether it goes with this sampler.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for the greedy rule with a temperature, and for rejection with Mirostat, whose bar depends on draws.
    pub fn check(self, sampler: &Sampler) -> Result<()> {
        let wrong = |what: &str| Err(Error::new(ErrorKind::Sampling, what).at_field("acceptance"));
        match self {
            Self::Greedy if sampler.params().temperature() != 0.0 => {
                wrong("the greedy rule needs a temperature of 0: use sampler-match")
            }
            Self::Rejection if sampler.params().has_mirostat() => {
                wrong("rejection does not go with mirostat: use sampler-match")
            }
            _ => Ok(()),
        }
    }

    /// Judges a draft by the model's logits: row `i` of `logits` are those before the draft's token `i`, and one row more follows. Tokens
    /// that stand go into the sampler's history, and so does the one after them. Judging ends with a token that `ends` a text.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for fewer rows than the draft's tokens and one, what [`check`](Self::check) and
    /// [`Sampler::sample`] return.
    pub fn judge(
        self,
        draft: &Draft,
        logits: &[&[f32]],
        sampler: &mut Sampler,
        ends: &dyn Fn(u32) -> bool,
    ) -> Result<Verdict> {
        self.check(sampler)?;
        if logits.len() != draft.len() + 1 {
            let what = format!("{} rows of logits for {} drafted tokens: wanted one more", logits.len(), draft.len());
            return Err(Error::new(ErrorKind::Sampling, what).at_field("acceptance"));
        }
        let mut verdict = Verdict { proposed: draft.len(), ..Verdict::default() };
        for (at, row) in logits.iter().enumerate() {
            let Some(&drafted) = draft.tokens().get(at) else {
                verdict.tokens.push(sampler.sample(row)?);
                break;
            };
            let token = match self {
                Self::Greedy | Self::SamplerMatch => sampler.sample(row)?,
                Self::Rejection => accept_or_draw(draft, at, row, sampler)?,
            };
            verdict.tokens.push(token);
            verdict.tested += 1;
            if token != drafted {
                break;
            }
            verdict.accepted += 1;
            if ends(token) {
                break;
            }
        }
        Ok(verdict)
    }
}

/// The draft's token if it stands, else a draw from the residual.
fn accept_or_draw(draft: &Draft, at: usize, row: &[f32], sampler: &mut Sampler) -> Result<u32> {
    let shares = sampler.distribution(row)?;
    let drafted = draft.tokens()[at];
    let p = shares.binary_search_by_key(&drafted, |c| c.0).map_or(0.0, |i| f64::from(shares[i].1));
    let q = f64::from(draft.share(at, drafted));
    let chance = sampler.uniform();
    // Not p / q: q may be so small that it divides to nothing sensible.
    let token = if chance * q < p {
        drafted
    } else {
        let more = |&(id, p): &(u32, f32)| (id, f64::from(p) - f64::from(draft.share(at, id)));
        let residual: Vec<(u32, f64)> = shares.iter().map(more).filter(|c| c.1 > 0.0).collect();
        let target = sampler.uniform() * residual.iter().map(|c| c.1).sum::<f64>();
        let mut reached = 0.0;
        let found = residual.iter().find(|c| {
            reached += c.1;
            reached > target
        });
        // Rounding may leave nothing of two equal distributions: then the draft is as good as any.
        found.or(residual.last()).map_or(drafted, |c| c.0)
    };
    sampler.push(token)?;
    Ok(token)
}

/// What became of a draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// The tokens that the text goes on with: the drafted ones that stand, and one of the model's own unless one of them ends the text.
    pub tokens: Vec<u32>,
    /// How many drafted tokens stand.
    pub accepted: usize,
    /// How many were looked at: up to the first that fell.
    pub tested: usize,
    /// How many there were.
    pub proposed: usize,
}

impl DraftStats {
    /// Counts a round.
    pub fn add(&mut self, verdict: &Verdict) {
        self.rounds += 1;
        self.proposed += verdict.proposed;
        self.tested += verdict.tested;
        self.accepted += verdict.accepted;
        self.tokens += verdict.tokens.len();
    }
}

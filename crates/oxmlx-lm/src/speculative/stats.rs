//! How good drafts are.

/// Counts over rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DraftStats {
    /// Passes of the model.
    pub rounds: usize,
    /// Drafted tokens.
    pub proposed: usize,
    /// Those that were looked at.
    pub tested: usize,
    /// Those that stand.
    pub accepted: usize,
    /// Tokens that the text grew by.
    pub tokens: usize,
}

impl DraftStats {
    /// Of the drafted tokens that were looked at, how many stand; 0 where there were none.
    pub fn accepted_of_tested(&self) -> f64 {
        ratio(self.accepted, self.tested)
    }

    /// Of all drafted tokens, how many stand; 0 where there were none.
    pub fn accepted_of_proposed(&self) -> f64 {
        ratio(self.accepted, self.proposed)
    }

    /// Tokens a pass of the model: 1 without drafts.
    pub fn tokens_per_round(&self) -> f64 {
        ratio(self.tokens, self.rounds)
    }
}

fn ratio(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

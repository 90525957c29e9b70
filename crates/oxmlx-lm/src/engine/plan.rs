//! The geometry of a prefill: which tokens are fed in which pieces. Pure data; no model and no array is touched.
//!
//! Invariant: the pieces cover `adopted..len` exactly and in order, and padding never outlives its piece.

use std::ops::Range;

use crate::{Error, ErrorKind, Result};

/// What a plan is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PlanSpec {
    len: usize,
    adopted: usize,
    boundary: Option<usize>,
    chunk: usize,
    tile: usize,
    slack: Option<usize>,
    context: usize,
}

impl PlanSpec {
    /// A prompt of `len` tokens, all of it in one piece.
    pub fn new(len: usize) -> Self {
        Self { len, adopted: 0, boundary: None, chunk: 0, tile: 1, slack: None, context: usize::MAX }
    }

    /// The caches hold the first `adopted` tokens already.
    pub fn adopted(mut self, adopted: usize) -> Self {
        self.adopted = adopted;
        self
    }

    /// A piece ends here, so that a snapshot can be taken. It counts only strictly between the adopted prefix and the end.
    pub fn boundary(mut self, boundary: Option<usize>) -> Self {
        self.boundary = boundary;
        self
    }

    /// The most tokens of a piece; 0 for all at once.
    pub fn chunk(mut self, chunk: usize) -> Self {
        self.chunk = chunk;
        self
    }

    /// Pieces are padded to a multiple of this, where the caches can forget the padding.
    pub fn tile(mut self, tile: usize) -> Self {
        self.tile = tile;
        self
    }

    /// How many tokens the caches can take and then forget ([`Cache::slack`](crate::cache::Cache::slack)); `None` for any number.
    pub fn slack(mut self, slack: Option<usize>) -> Self {
        self.slack = slack;
        self
    }

    /// The most tokens that the model can see: no padding lies beyond.
    pub fn context(mut self, context: usize) -> Self {
        self.context = context;
        self
    }
}

/// Tokens that are fed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which tokens of the prompt.
    pub tokens: Range<usize>,
    /// How many tokens follow that mean nothing and are forgotten afterwards.
    pub padding: usize,
}

impl Piece {
    /// The tokens that the model sees, padding included.
    pub fn fed(&self) -> usize {
        self.tokens.len().saturating_add(self.padding)
    }
}

/// The pieces of a prefill.
///
/// ```
/// use oxmlx_lm::engine::{PlanSpec, PrefillPlan};
/// let plan = PrefillPlan::new(PlanSpec::new(10).adopted(2).boundary(Some(5)).chunk(4))?;
/// let pieces: Vec<_> = plan.pieces().iter().map(|p| p.tokens.clone()).collect();
/// assert_eq!(pieces, [2..5, 5..9, 9..10]);
/// # Ok::<(), oxmlx_lm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefillPlan {
    len: usize,
    kept: usize,
    trim: usize,
    boundary: Option<usize>,
    pieces: Vec<Piece>,
}

impl PrefillPlan {
    /// The pieces that `spec` asks for. The last token is always fed, since its logits are what comes out: of a prefix that has all the
    /// tokens or more, the plan forgets what is too much.
    ///
    /// # Errors
    /// [`ErrorKind::Prompt`] for an empty prompt, [`ErrorKind::Cache`] when more tokens were adopted than the prompt leaves and the caches
    /// can't forget them.
    pub fn new(spec: PlanSpec) -> Result<Self> {
        let PlanSpec { len, adopted, boundary, chunk, tile, slack, context } = spec;
        if len == 0 {
            return Err(Error::new(ErrorKind::Prompt, "the prompt is empty: give at least one token"));
        }
        let kept = adopted.min(len - 1);
        let trim = adopted - kept;
        if slack.is_some_and(|slack| trim > slack) {
            let what = format!(
                "the caches hold {adopted} tokens, {kept} of them serve the prompt, and they can't forget the last {trim}: start anew"
            );
            return Err(Error::new(ErrorKind::Cache, what));
        }
        let boundary = boundary.filter(|&at| at > kept && at < len);
        let mut pieces = Vec::new();
        let mut at = kept;
        for (end, exact) in boundary.map(|b| (b, true)).into_iter().chain([(len, false)]) {
            while at < end {
                let stop = if chunk == 0 { end } else { end.min(at.saturating_add(chunk)) };
                let tail = (stop - at) % tile.max(1);
                let wanted = if tail == 0 { 0 } else { tile - tail };
                let beyond = stop.checked_add(wanted).is_none_or(|last| last > context);
                let unpadded = beyond || (exact && stop == end) || slack.is_some_and(|slack| wanted > slack);
                pieces.push(Piece { tokens: at..stop, padding: if unpadded { 0 } else { wanted } });
                at = stop;
            }
        }
        Ok(Self { len, kept, trim, boundary, pieces })
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The length of the prompt.
    pub fn prompt_len(&self) -> usize {
        self.len
    }

    /// How many adopted tokens serve.
    pub fn adopted(&self) -> usize {
        self.kept
    }

    /// How many adopted tokens are forgotten before the first piece.
    pub fn trim(&self) -> usize {
        self.trim
    }

    /// Where a snapshot can be taken, if the boundary counted.
    pub fn boundary(&self) -> Option<usize> {
        self.boundary
    }

    /// The positions at which a piece ends.
    pub fn split_points(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().map(|piece| piece.tokens.end)
    }

    /// The tokens that the model sees, padding included.
    pub fn fed(&self) -> usize {
        self.pieces.iter().map(Piece::fed).sum()
    }

    /// Whether this run, which adopted a prefix, feeds the same pieces as the end of `cold`: then it computes the same values.
    pub fn reproduces(&self, cold: &Self) -> bool {
        self.len == cold.len && cold.kept <= self.kept && cold.pieces.ends_with(&self.pieces)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

//! Which keys a query sees.

use crate::dtype::{Float, Floats, each_float};
use crate::error::{Check, ShapeError};

/// Which keys a query sees, of `[batch, heads, queries, keys]`.
#[derive(Debug, Clone, Copy, Default)]
pub enum Mask<'a> {
    /// All.
    #[default]
    None,
    /// Query `i` of `l` sees key `j` of `n` if `j <= i + n - l`, and, with a window, if `j > i + n - l - window`.
    Causal {
        /// Keys that are seen at most, the newest first.
        window: Option<usize>,
    },
    /// Keys whose byte is not zero are seen.
    Bool(MaskView<&'a [u8]>),
    /// Is added to the scores.
    Add(MaskView<Floats<'a>>),
}

/// A mask with any strides, counted in elements; 0 repeats it along an axis.
#[derive(Debug, Clone, Copy)]
pub struct MaskView<T> {
    /// The elements.
    pub data: T,
    /// Steps along batch, heads, queries, keys.
    pub strides: [usize; 4],
}

/// What a mask did to a row, where it matters for rows that see nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hide {
    /// Hidden rows give the mean of the values.
    Mean,
    /// Hidden rows give NaN.
    Nan,
}

/// The place of a row of scores.
#[derive(Clone, Copy)]
pub(crate) struct RowAt {
    pub(crate) batch: usize,
    pub(crate) head: usize,
    pub(crate) query: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
}

impl Mask<'_> {
    pub(crate) fn check(&self, check: Check, shape: [usize; 4]) -> Result<(), ShapeError> {
        let (len, strides) = match self {
            Mask::None | Mask::Causal { .. } => return Ok(()),
            Mask::Bool(m) => (m.data.len(), m.strides),
            Mask::Add(m) => (m.data.len(), m.strides),
        };
        if shape.contains(&0) {
            return Ok(());
        }
        let steps = shape.iter().zip(strides).map(|(n, stride)| (n - 1).saturating_mul(stride));
        check.at_least("mask length", len, steps.fold(1, usize::saturating_add))
    }

    pub(crate) fn hide(&self) -> Hide {
        if matches!(self, Mask::Add(_)) { Hide::Nan } else { Hide::Mean }
    }

    /// The keys that the rows may see at all: others need not be visited.
    pub(crate) fn span(&self, first: RowAt, last_query: usize) -> (usize, usize) {
        let Mask::Causal { window } = *self else { return (0, first.keys) };
        let end = (last_query + 1 + first.keys).saturating_sub(first.queries).min(first.keys);
        let start = (first.query + 1 + first.keys).saturating_sub(first.queries);
        (window.map_or(0, |w| start.saturating_sub(w)).min(end), end)
    }

    /// Applies the mask to the scores of keys `from..from + scores.len()`.
    #[inline(always)]
    pub(crate) fn apply(&self, at: RowAt, from: usize, scores: &mut [f32]) {
        match self {
            Mask::None => {}
            Mask::Causal { .. } => {
                let (start, end) = self.span(at, at.query);
                let n = scores.len();
                scores[..start.saturating_sub(from).min(n)].fill(f32::NEG_INFINITY);
                scores[end.saturating_sub(from).min(n)..].fill(f32::NEG_INFINITY);
            }
            Mask::Bool(m) => {
                let start = m.start(at) + from * m.strides[3];
                for (j, score) in scores.iter_mut().enumerate() {
                    if m.data[start + j * m.strides[3]] == 0 {
                        *score = f32::NEG_INFINITY;
                    }
                }
            }
            Mask::Add(m) => {
                let start = m.start(at) + from * m.strides[3];
                each_float!(Floats, m.data, x => {
                    for (j, score) in scores.iter_mut().enumerate() {
                        *score += x[start + j * m.strides[3]].to_f32();
                    }
                });
            }
        }
    }
}

impl<T> MaskView<T> {
    #[inline(always)]
    fn start(&self, at: RowAt) -> usize {
        at.batch * self.strides[0] + at.head * self.strides[1] + at.query * self.strides[2]
    }
}

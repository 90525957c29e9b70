//! The running state of a row's softmax.

use crate::attention::Attention;
use crate::attention::mask::{Hide, RowAt};
use crate::dtype::{Float, each_float};
use crate::ops::{exp_row, largest};
use crate::simd::Simd;

/// Maximum and sum so far. The result so far is a sum of values weighted by `exp(score - max)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Running {
    pub(crate) max: f32,
    pub(crate) sum: f32,
}

impl Running {
    pub(crate) const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };

    /// Turns a tile's scores into weights; returns by what the result so far is to be multiplied.
    #[inline(always)]
    pub(crate) fn take<S: Simd>(&mut self, s: S, scores: &mut [f32]) -> f32 {
        let top = largest(s, scores).max(self.max);
        if top == f32::NEG_INFINITY && !scores.iter().any(|x| x.is_nan()) {
            scores.fill(0.0);
            return 1.0;
        }
        let keep = (self.max - top).exp();
        self.sum = self.sum * keep + exp_row(s, scores, top);
        self.max = top;
        keep
    }

    /// Joins another part of the same row; returns the factors of this part's and the other's results.
    pub(crate) fn join(&mut self, other: Self) -> [f32; 2] {
        let top = self.max.max(other.max);
        if top == f32::NEG_INFINITY {
            self.sum += other.sum;
            return [1.0, 1.0];
        }
        let factors = [(self.max - top).exp(), (other.max - top).exp()];
        *self = Self { max: top, sum: self.sum * factors[0] + other.sum * factors[1] };
        factors
    }
}

impl Attention<'_> {
    pub(crate) fn row_at(&self, batch: usize, head: usize, query: usize) -> RowAt {
        RowAt { batch, head, query, queries: self.q.shape[2], keys: self.k.shape[2] }
    }

    /// Divides a row's result by its sum, a sink included; a row that saw nothing gets what the mask asks for.
    #[inline(always)]
    pub(crate) fn finish<S: Simd>(&self, s: S, at: RowAt, mut state: Running, row: &mut [f32]) {
        let _ = s;
        let mut factor = 1.0;
        if let Some(sinks) = self.sinks {
            factor = state.join(Running { max: sinks[at.head], sum: 1.0 })[0];
        } else if state.sum == 0.0 && state.max == f32::NEG_INFINITY && self.mask.hide() == Hide::Mean {
            return self.mean(at, row);
        }
        let factor = factor / state.sum;
        for y in row {
            *y *= factor;
        }
    }

    /// The mean of a head's values.
    fn mean(&self, at: RowAt, row: &mut [f32]) {
        let v = self.v.plane(at.batch, at.head / self.group());
        row.fill(0.0);
        for j in 0..v.rows {
            each_float!(Floats, v.data, x => {
                for (y, x) in row.iter_mut().zip(&x[j * v.row_stride..][..v.cols]) {
                    *y += x.to_f32();
                }
            });
        }
        row.iter_mut().for_each(|y| *y /= v.rows as f32);
    }
}

//! `softmax(scale * q @ k^T + mask) @ v` without the score matrix: keys are visited in tiles, and each row keeps a running
//! maximum, a running sum and an unfinished result.
//!
//! Few query rows (decoding) read keys and values once, as fast as memory gives them, cut along the keys so that all threads
//! have work. Many (prefill) pack tiles of keys and values and multiply them with the kernel of `gemm`.
//!
//! A row that sees no key gives what MLX gives: the mean of all values if it was hidden by a boolean mask, by causality or by
//! a window; NaN if by an additive mask of `-inf`; zero if the head has a sink.

mod decode;
mod mask;
mod prefill;
mod state;

use crate::dtype::{FloatsMut, each_float};
use crate::error::{Check, ShapeError};
use crate::level::Level;
use crate::matrix::View4;

pub use mask::{Mask, MaskView};

pub(crate) use decode::{Scan, clear, join, scan};
pub(crate) use mask::RowAt;
pub(crate) use state::Running;

/// What to attend with; see [`attention`].
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    q: View4<'a>,
    k: View4<'a>,
    v: View4<'a>,
    scale: f32,
    mask: Mask<'a>,
    sinks: Option<&'a [f32]>,
}

impl<'a> Attention<'a> {
    /// Queries `[batch, heads, length, width]`, keys `[batch, kv heads, keys, width]`, values `[batch, kv heads, keys, value
    /// width]`; `heads` is a multiple of `kv heads`. No mask, no sinks.
    ///
    /// # Errors
    /// If the shapes do not fit together.
    pub fn new(q: View4<'a>, k: View4<'a>, v: View4<'a>, scale: f32) -> Result<Self, ShapeError> {
        let check = Check("attention");
        let ([b, h, _, d], [kb, kh, n, kd], [vb, vh, vn, _]) = (q.shape, k.shape, v.shape);
        check.equal("batch of keys", kb, b)?;
        check.equal("batch of values", vb, b)?;
        check.equal("width of keys", kd, d)?;
        check.equal("heads of values", vh, kh)?;
        check.equal("length of values", vn, n)?;
        if h > 0 {
            check.multiple("query heads", h, kh)?;
        }
        Ok(Self { q, k, v, scale, mask: Mask::None, sinks: None })
    }

    /// Hides keys from queries.
    ///
    /// # Errors
    /// If a mask's view is too short for `[batch, heads, queries, keys]`.
    pub fn mask(self, mask: Mask<'a>) -> Result<Self, ShapeError> {
        let [b, h, l, _] = self.q.shape;
        mask.check(Check("attention"), [b, h, l, self.k.shape[2]])?;
        Ok(Self { mask, ..self })
    }

    /// Gives each head one more score, whose value is zero.
    ///
    /// # Errors
    /// If there is not one a query head.
    pub fn sinks(self, sinks: &'a [f32]) -> Result<Self, ShapeError> {
        Check("attention").equal("sinks length", sinks.len(), self.q.shape[1])?;
        Ok(Self { sinks: Some(sinks), ..self })
    }

    /// Query heads that share a key head.
    fn group(&self) -> usize {
        self.q.shape[1] / self.k.shape[1].max(1)
    }
}

/// Query rows a key head up to which keys are read without packing.
const FEW: usize = 16;

/// Computes attention into `out` `[batch, heads, length, value width]`, contiguous. Sums are f32.
///
/// # Errors
/// If `out` has another length.
pub fn attention(level: Level, what: Attention<'_>, out: FloatsMut<'_>) -> Result<(), ShapeError> {
    let [b, h, l, _] = what.q.shape;
    let width = what.v.shape[3];
    Check("attention").equal("out length", out.len(), b * h * l * width)?;
    if out.is_empty() {
        return Ok(());
    }
    each_float!(FloatsMut, out, y => {
        if what.group() * l <= FEW {
            decode::run(level, &what, y);
        } else {
            prefill::run(level, &what, y);
        }
    });
    Ok(())
}

//! Conversion between f32 and the other float types.

use crate::dtype::{Float, Floats, FloatsMut, each_float, narrow};
use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::simd::Simd;

/// Writes the values of `x` into `out`.
///
/// # Errors
/// If the lengths differ.
pub fn widen(level: Level, x: Floats<'_>, out: &mut [f32]) -> Result<(), ShapeError> {
    Check("widen").equal("length of out", out.len(), x.len())?;
    level.run(Widen { x, out });
    Ok(())
}

/// Writes `x` into `out`, each value rounded to the nearest, ties to even.
///
/// # Errors
/// If the lengths differ.
pub fn round(level: Level, x: &[f32], out: FloatsMut<'_>) -> Result<(), ShapeError> {
    Check("round").equal("length of out", out.len(), x.len())?;
    each_float!(FloatsMut, out, out => level.run(Narrow { from: x, to: out }));
    Ok(())
}

struct Widen<'a> {
    x: Floats<'a>,
    out: &'a mut [f32],
}

impl Work for Widen<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.x.widen(s, 0, self.out);
    }
}

/// Stores f32 results in the output's type.
pub(crate) struct Narrow<'a, T> {
    pub(crate) from: &'a [f32],
    pub(crate) to: &'a mut [T],
}

impl<T: Float> Work for Narrow<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        narrow(s, self.from, self.to);
    }
}

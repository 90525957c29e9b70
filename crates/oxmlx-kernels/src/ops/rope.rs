//! Rotary position embedding. Angles are computed in f64 and reduced there, so that far positions keep their precision.

use crate::dtype::{Float, Floats, FloatsMut, each_float, narrow, widen};
use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::math::sin_cos;
use crate::matrix::View4;
use crate::ops::SMALL;
use crate::pool::Pool;
use crate::raw::Tiles;
use crate::scratch;
use crate::simd::Simd;

/// How positions turn into rotations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope<'a> {
    dims: usize,
    freqs: Freqs<'a>,
    scale: f32,
    traditional: bool,
    inverse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Freqs<'a> {
    Base(f32),
    Wavelengths(&'a [f32]),
}

impl<'a> Rope<'a> {
    /// Rotates the first `dims` elements of a row; pair `i` turns by `position * base^(-2 i / dims)`.
    pub fn new(dims: usize, base: f32) -> Self {
        Self { dims, freqs: Freqs::Base(base), scale: 1.0, traditional: false, inverse: false }
    }

    /// Pair `i` turns by `position / freqs[i]`, as MLX has it.
    pub fn with_freqs(dims: usize, freqs: &'a [f32]) -> Self {
        Self { freqs: Freqs::Wavelengths(freqs), ..Self::new(dims, 1.0) }
    }

    /// Multiplies positions.
    #[must_use]
    pub fn scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// Pairs are neighbours rather than half a row apart.
    #[must_use]
    pub fn traditional(self, traditional: bool) -> Self {
        Self { traditional, ..self }
    }

    /// Turns the other way: the gradient.
    #[must_use]
    pub fn inverse(self, inverse: bool) -> Self {
        Self { inverse, ..self }
    }

    pub(crate) fn check(&self, check: Check, width: usize) -> Result<(), ShapeError> {
        check.multiple("dims", self.dims, 2)?;
        check.at_most("dims", self.dims, width)?;
        if let Freqs::Wavelengths(freqs) = self.freqs {
            check.equal("freqs length", freqs.len(), self.dims / 2)?;
        }
        Ok(())
    }

    /// Rotated elements of a row.
    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    /// Whether pairs are neighbours.
    pub(crate) fn is_traditional(&self) -> bool {
        self.traditional
    }

    /// Work that fills `to` with the cosines of a position, then the sines.
    pub(crate) fn at<'t>(self, position: i64, to: &'t mut [f32]) -> Angles<'a, 't> {
        Angles { rope: self, position, to }
    }
}

/// Rotates the rows of `x` `[batch, heads, length, width]`; row `l` of batch `b` has position `offsets[b] + l`.
///
/// `offsets` has one element for all or one a batch; `out` is contiguous, in the shape of `x`.
///
/// # Errors
/// If `dims` is odd or wider than a row, or a length does not match.
pub fn rope(level: Level, x: View4<'_>, rope: Rope<'_>, offsets: &[i32], out: FloatsMut<'_>) -> Result<(), ShapeError> {
    let check = Check("rope");
    let [batch, heads, length, width] = x.shape;
    rope.check(check, width)?;
    if offsets.len() != 1 {
        check.equal("offsets length", offsets.len(), batch)?;
    }
    let rows = batch * heads * length;
    check.equal("out length", out.len(), rows * width)?;
    let half = rope.dims / 2;
    // Rows of a task have the same batch and position: one table serves all heads.
    let spread = rows * width > SMALL;
    each_float!(FloatsMut, out, y => {
        let tiles = Tiles::new(y, [rows, width], width, [1, width]);
        let one = |i: usize| {
            let (b, l) = (i / length, i % length);
            let offset = *offsets.get(b).or(offsets.first()).unwrap_or(&0);
            scratch::with(2 * half + width, |buffer| {
                let (table, row) = buffer.split_at_mut(2 * half);
                level.run(rope.at(i64::from(offset) + l as i64, table));
                for h in 0..heads {
                    let Some(mut tile) = tiles.claim((b * heads + h) * length + l) else { continue };
                    let from = x.data.window(x.start(b, h, l), width);
                    level.run(RotateRow { from, row, table, traditional: rope.traditional, to: tile.row(0) });
                }
            });
        };
        if spread {
            // Several positions a task, so that handing over stays cheap.
            let step = (SMALL / 4).div_ceil(heads * width).max(1);
            Pool::global().parallel((batch * length).div_ceil(step), |t| {
                (t * step..((t + 1) * step).min(batch * length)).for_each(one);
            });
        } else {
            (0..batch * length).for_each(one);
        }
    });
    Ok(())
}

/// Computes cosines and sines.
pub(crate) struct Angles<'a, 't> {
    rope: Rope<'a>,
    position: i64,
    to: &'t mut [f32],
}

impl Work for Angles<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let half = self.rope.dims / 2;
        let (cosines, sines) = self.to[..2 * half].split_at_mut(half);
        let turn = self.position as f64 * f64::from(self.rope.scale) * if self.rope.inverse { -1.0 } else { 1.0 };
        let ratio = match self.rope.freqs {
            Freqs::Base(base) => (-f64::from(base).ln() / half as f64).exp(),
            Freqs::Wavelengths(_) => 1.0,
        };
        let mut frequency = 1.0;
        for (i, (c, s)) in cosines.iter_mut().zip(sines).enumerate() {
            let angle = match self.rope.freqs {
                Freqs::Base(_) => turn * frequency,
                Freqs::Wavelengths(freqs) => turn / f64::from(freqs[i]),
            };
            (*s, *c) = sin_cos(angle);
            frequency *= ratio;
        }
    }
}

struct RotateRow<'a, T> {
    from: Floats<'a>,
    row: &'a mut [f32],
    table: &'a [f32],
    traditional: bool,
    to: &'a mut [T],
}

impl<T: Float> Work for RotateRow<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        each_float!(Floats, self.from, x => widen(s, x, self.row));
        rotate(self.row, self.table, self.traditional);
        narrow(s, self.row, self.to);
    }
}

/// Rotates the pairs at the start of `row` by the angles of a table.
#[inline(always)]
pub(crate) fn rotate(row: &mut [f32], table: &[f32], traditional: bool) {
    let half = table.len() / 2;
    let (cosines, sines) = table.split_at(half);
    if traditional {
        for ((pair, c), s) in row.as_chunks_mut::<2>().0.iter_mut().zip(cosines).zip(sines) {
            *pair = [pair[0] * c - pair[1] * s, pair[0] * s + pair[1] * c];
        }
    } else {
        let (low, rest) = row.split_at_mut(half);
        for (((a, b), c), s) in low.iter_mut().zip(rest).zip(cosines).zip(sines) {
            (*a, *b) = (*a * c - *b * s, *a * s + *b * c);
        }
    }
}

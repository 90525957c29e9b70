//! `rms_norm`, `layer_norm` and `softmax`: each row is widened, worked on in f32, and rounded once.

use crate::dtype::{Float, Floats, each_float, narrow, widen};
use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::math::exp;
use crate::matrix::{MatMut, MatRef};
use crate::ops::SMALL;
use crate::pool::Pool;
use crate::raw::{Tile, Tiles};
use crate::scratch;
use crate::simd::Simd;

/// What a norm multiplies and adds after normalizing, and the number it adds to the variance.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// Multiplies, if there; as long as a row.
    pub weight: Option<Floats<'a>>,
    /// Is added, if there; as long as a row. Only `layer_norm` has one.
    pub bias: Option<Floats<'a>>,
    /// Added to the mean square or the variance.
    pub eps: f32,
}

/// `out = x / sqrt(mean(x^2) + eps) * weight`, row by row; a bias is ignored.
///
/// # Errors
/// If the shapes do not fit together.
pub fn rms_norm(level: Level, x: MatRef<'_>, norm: Norm<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    rows("rms_norm", level, x, Norm { bias: None, ..norm }, out, Kind::Rms)
}

/// `out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, row by row.
///
/// # Errors
/// If the shapes do not fit together.
pub fn layer_norm(level: Level, x: MatRef<'_>, norm: Norm<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    rows("layer_norm", level, x, norm, out, Kind::Layer)
}

/// `out = exp(x - max(x)) / sum(exp(x - max(x)))`, row by row. A row of `-inf` gives NaN.
///
/// # Errors
/// If the shapes do not fit together.
pub fn softmax(level: Level, x: MatRef<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    rows("softmax", level, x, Norm { weight: None, bias: None, eps: 0.0 }, out, Kind::Softmax)
}

#[derive(Clone, Copy)]
enum Kind {
    Rms,
    Layer,
    Softmax,
}

fn rows(
    op: &'static str,
    level: Level,
    x: MatRef<'_>,
    norm: Norm<'_>,
    out: MatMut<'_>,
    kind: Kind,
) -> Result<(), ShapeError> {
    let check = Check(op);
    let [rows, cols] = x.shape();
    check.equal("rows of out", out.rows, rows)?;
    check.equal("columns of out", out.cols, cols)?;
    if let Some(weight) = norm.weight {
        check.equal("weight length", weight.len(), cols)?;
    }
    if let Some(bias) = norm.bias {
        check.equal("bias length", bias.len(), cols)?;
    }
    let MatMut { data, stride, .. } = out;
    let step = if rows * cols <= SMALL { rows } else { (SMALL / 4).div_ceil(cols.max(1)) };
    scratch::with(2 * cols, |buffer| {
        let (weight, bias) = buffer.split_at_mut(cols);
        let weight = norm.weight.map(|w| level.run(Widen { from: w, to: weight }));
        let bias = norm.bias.map(|b| level.run(Widen { from: b, to: bias }));
        each_float!(FloatsMut, data, y => {
            let tiles = Tiles::new(y, [rows, cols], stride, [step, cols]);
            Pool::global().parallel(tiles.count(), |i| {
                let Some(tile) = tiles.claim(i) else { return };
                scratch::with(cols, |row| level.run(Rows { x: &x, tile, row, weight, bias, eps: norm.eps, kind }));
            });
        });
    });
    Ok(())
}

/// Widens a slice and gives it back.
struct Widen<'a, 'b> {
    from: Floats<'b>,
    to: &'a mut [f32],
}

impl<'a> Work for Widen<'a, '_> {
    type Out = &'a [f32];

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> &'a [f32] {
        self.from.widen(s, 0, self.to);
        self.to
    }
}

struct Rows<'a, 't, T> {
    x: &'a MatRef<'a>,
    tile: Tile<'t, T>,
    row: &'a mut [f32],
    weight: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
    eps: f32,
    kind: Kind,
}

impl<T: Float> Work for Rows<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (first, row) = (self.tile.origin()[0], self.row);
        for r in 0..self.tile.shape()[0] {
            let start = (first + r) * self.x.row_stride;
            each_float!(Floats, self.x.data, x => {
                if self.x.col_stride == 1 {
                    widen(s, &x[start..], row);
                } else {
                    for (i, y) in row.iter_mut().enumerate() {
                        *y = x[start + i * self.x.col_stride].to_f32();
                    }
                }
            });
            match self.kind {
                Kind::Rms => normalize(s, row, 0.0, rms_scale(s, row, self.eps), (self.weight, None)),
                Kind::Layer => {
                    let mean = sum_of(s, row, |_, x| x, |x| x) / row.len() as f32;
                    let square = |s: S, x: S::V| {
                        let d = s.sub(x, s.splat(mean));
                        s.mul(d, d)
                    };
                    let variance = sum_of(s, row, square, |x| (x - mean) * (x - mean)) / row.len() as f32;
                    normalize(s, row, mean, 1.0 / (variance + self.eps).sqrt(), (self.weight, self.bias));
                }
                Kind::Softmax => soft_row(s, row),
            }
            narrow(s, row, self.tile.row(r));
        }
    }
}

/// The sum of a function of the elements, in four independent vectors.
#[inline(always)]
pub(crate) fn sum_of<S: Simd>(s: S, x: &[f32], vector: impl Fn(S, S::V) -> S::V, scalar: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [s.zero(); 4];
    let wide = x.len() / (4 * S::LANES) * 4 * S::LANES;
    for x in x[..wide].chunks_exact(4 * S::LANES) {
        for i in 0..4 {
            sums[i] = s.add(sums[i], vector(s, s.load(&x[i * S::LANES..(i + 1) * S::LANES])));
        }
    }
    let rest = &x[wide..];
    let whole = rest.len() / S::LANES * S::LANES;
    for x in rest[..whole].chunks_exact(S::LANES) {
        sums[0] = s.add(sums[0], vector(s, s.load(x)));
    }
    let sum = s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])));
    rest[whole..].iter().fold(sum, |sum, &x| sum + scalar(x))
}

/// `1 / sqrt(mean(x^2) + eps)`.
#[inline(always)]
pub(crate) fn rms_scale<S: Simd>(s: S, x: &[f32], eps: f32) -> f32 {
    let square = sum_of(s, x, |s, x| s.mul(x, x), |x| x * x);
    1.0 / (square / x.len() as f32 + eps).sqrt()
}

/// `(x - mean) * scale * weight + bias` in place.
#[inline(always)]
pub(crate) fn normalize<S: Simd>(
    s: S,
    row: &mut [f32],
    mean: f32,
    scale: f32,
    (weight, bias): (Option<&[f32]>, Option<&[f32]>),
) {
    let whole = row.len() / S::LANES * S::LANES;
    for at in (0..whole).step_by(S::LANES) {
        let x = &mut row[at..at + S::LANES];
        let mut y = s.mul(s.sub(s.load(x), s.splat(mean)), s.splat(scale));
        if let Some(w) = weight {
            y = s.mul(y, s.load(&w[at..at + S::LANES]));
        }
        if let Some(b) = bias {
            y = s.add(y, s.load(&b[at..at + S::LANES]));
        }
        s.store(y, x);
    }
    for at in whole..row.len() {
        let y = (row[at] - mean) * scale * weight.map_or(1.0, |w| w[at]);
        row[at] = y + bias.map_or(0.0, |b| b[at]);
    }
}

/// The largest element, NaN aside.
#[inline(always)]
pub(crate) fn largest<S: Simd>(s: S, row: &[f32]) -> f32 {
    let whole = row.len() / S::LANES * S::LANES;
    let mut top = [s.splat(f32::NEG_INFINITY); 2];
    for (i, x) in row[..whole].chunks_exact(S::LANES).enumerate() {
        // `max` gives its second argument for NaN.
        top[i % 2] = s.max(s.load(x), top[i % 2]);
    }
    row[whole..].iter().fold(s.max_lane(s.max(top[0], top[1])), |top, &x| if x > top { x } else { top })
}

/// `exp(x - shift)` in place; returns the sum.
#[inline(always)]
pub(crate) fn exp_row<S: Simd>(s: S, row: &mut [f32], shift: f32) -> f32 {
    let whole = row.len() / S::LANES * S::LANES;
    let mut sums = [s.zero(); 2];
    for (i, x) in row[..whole].chunks_exact_mut(S::LANES).enumerate() {
        let y = exp(s, s.sub(s.load(x), s.splat(shift)));
        sums[i % 2] = s.add(sums[i % 2], y);
        s.store(y, x);
    }
    let mut last = [0.0; 16];
    let rest = &mut row[whole..];
    for (y, x) in last.iter_mut().zip(&*rest) {
        *y = x - shift;
    }
    if !rest.is_empty() {
        s.store(exp(s, s.load(&last)), &mut last);
    }
    rest.copy_from_slice(&last[..rest.len()]);
    rest.iter().fold(s.sum(s.add(sums[0], sums[1])), |sum, x| sum + x)
}

#[inline(always)]
fn soft_row<S: Simd>(s: S, row: &mut [f32]) {
    let top = largest(s, row);
    let sum = exp_row(s, row, top);
    for x in row {
        *x /= sum;
    }
}

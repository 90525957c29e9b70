//! A few rows times a dense matrix: bound by how fast the matrix arrives.

use crate::dtype::{Float, each_float, widen};
use crate::gemm::{Blend, Factors};
use crate::level::{Level, Work};
use crate::matrix::{MatMut, MatRef};
use crate::pool::Pool;
use crate::raw::Tiles;
use crate::scratch;
use crate::simd::Simd;

/// Most rows of `a` that are multiplied at a time.
pub(crate) const MAX_ROWS: usize = 8;
/// How far ahead of its use the matrix is asked for, in bytes.
const AHEAD: usize = 2048;
/// Columns whose sums are gathered before they are stored.
const STRIP: usize = 256;

/// `out = alpha * a @ b + beta * out` for at most 8 rows of `a`; rows or columns of `b` are contiguous, the shapes fit.
pub(crate) fn few_rows(level: Level, a: &MatRef<'_>, b: &MatRef<'_>, out: MatMut<'_>, factors: Factors) {
    let (m, k) = (a.rows, a.cols);
    let MatMut { data, cols, stride, .. } = out;
    let padded = m.max(1).next_power_of_two();
    let pool = Pool::global();
    let bytes = k * 4 + 1;
    let step = cols.div_ceil(pool.threads() * 4).max(16384 / bytes).max(64).next_multiple_of(64);
    scratch::with(padded * k, |x| {
        level.run(Copy { a, to: x });
        let x = &*x;
        each_float!(FloatsMut, data, y => {
            let tiles = Tiles::new(y, [m, cols], stride, [m, step]);
            pool.parallel(tiles.count(), |i| {
                let Some(mut tile) = tiles.claim(i) else { return };
                let ([_, first], [_, count]) = (tile.origin(), tile.shape());
                let mut sums = [0.0; MAX_ROWS * STRIP];
                for start in (0..count).step_by(STRIP) {
                    let n = STRIP.min(count - start);
                    let sums = &mut sums[..padded * n];
                    each_float!(Floats, b.data, w => {
                        let from = first + start;
                        if k == 0 {
                            sums.fill(0.0);
                        } else if b.row_stride == 1 {
                            dots(level, Side { w, stride: b.col_stride, from, x, k, sums, n }, padded);
                        } else {
                            axpys(level, Side { w, stride: b.row_stride, from, x, k, sums, n }, padded);
                        }
                    });
                    for r in 0..m {
                        let to = &mut tile.row(r)[start..start + n];
                        level.run(Blend { from: &sums[r * n..(r + 1) * n], to, factors });
                    }
                }
            });
        });
    });
}

/// Rows of `a` as f32; what `to` has beyond them becomes zero.
struct Copy<'a> {
    a: &'a MatRef<'a>,
    to: &'a mut [f32],
}

impl Work for Copy<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let a = self.a;
        let (rows, rest) = self.to.split_at_mut(a.rows * a.cols);
        rest.fill(0.0);
        for (r, to) in rows.chunks_exact_mut(a.cols.max(1)).enumerate() {
            let start = r * a.row_stride;
            each_float!(Floats, a.data, x => {
                if a.col_stride == 1 {
                    widen(s, &x[start..], to);
                } else {
                    to.iter_mut().enumerate().for_each(|(i, y)| *y = x[start + i * a.col_stride].to_f32());
                }
            });
        }
    }
}

/// `n` columns of a product from column `from` on. `w` holds either the columns (`stride` apart) or the rows of the matrix.
pub(crate) struct Side<'a, T> {
    pub(crate) w: &'a [T],
    pub(crate) stride: usize,
    pub(crate) from: usize,
    pub(crate) x: &'a [f32],
    pub(crate) k: usize,
    pub(crate) sums: &'a mut [f32],
    pub(crate) n: usize,
}

/// Products with `padded` (1, 2, 4 or 8) rows of `x`.
pub(crate) fn dots<T: Float>(level: Level, side: Side<'_, T>, padded: usize) {
    match padded {
        1 => level.run(Dots::<T, 4, 1>(side)),
        2 => level.run(Dots::<T, 4, 2>(side)),
        4 => level.run(Dots::<T, 4, 4>(side)),
        _ => level.run(Dots::<T, 2, 8>(side)),
    }
}

fn axpys<T: Float>(level: Level, side: Side<'_, T>, padded: usize) {
    match padded {
        1 => level.run(Axpys::<T, 1>(side)),
        2 => level.run(Axpys::<T, 2>(side)),
        4 => level.run(Axpys::<T, 4>(side)),
        _ => level.run(Axpys::<T, 8>(side)),
    }
}

/// Columns of the matrix are contiguous: each sum is a dot product.
struct Dots<'a, T, const R: usize, const M: usize>(Side<'a, T>);

impl<T: Float, const R: usize, const M: usize> Work for Dots<'_, T, R, M> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Side { w, stride, from, x, k, sums, n } = self.0;
        let whole = n / R * R;
        for c in (0..whole).step_by(R) {
            let dots = columns::<S, T, R, M>(s, &w[(from + c) * stride..], stride, x, k);
            for (sums, dots) in sums.chunks_exact_mut(n).zip(&dots) {
                sums[c..c + R].copy_from_slice(dots);
            }
        }
        for c in whole..n {
            let dots = columns::<S, T, 1, M>(s, &w[(from + c) * stride..], stride, x, k);
            for (sums, dots) in sums.chunks_exact_mut(n).zip(&dots) {
                sums[c] = dots[0];
            }
        }
    }
}

/// Dot products of `R` neighbouring columns with `M` rows of `x`.
#[inline(always)]
fn columns<S: Simd, T: Float, const R: usize, const M: usize>(
    s: S,
    w: &[T],
    stride: usize,
    x: &[f32],
    k: usize,
) -> [[f32; R]; M] {
    let whole = k / S::LANES * S::LANES;
    let mut cols: [&[T]; R] = [&[]; R];
    for (r, col) in cols.iter_mut().enumerate() {
        *col = &w[r * stride..][..k];
    }
    let mut rows: [&[f32]; M] = [&[]; M];
    for (m, row) in rows.iter_mut().enumerate() {
        *row = &x[m * k..][..k];
    }
    let mut acc = [[s.zero(); M]; R];
    for at in (0..whole).step_by(S::LANES) {
        s.prefetch(&cols[0][at..], AHEAD);
        for r in 0..R {
            let w = T::load(s, &cols[r][at..at + S::LANES]);
            for m in 0..M {
                acc[r][m] = s.fma(w, s.load(&rows[m][at..at + S::LANES]), acc[r][m]);
            }
        }
    }
    let mut dots = [[0.0; R]; M];
    for m in 0..M {
        for r in 0..R {
            let mut sum = s.sum(acc[r][m]);
            for (w, x) in cols[r][whole..].iter().zip(&rows[m][whole..]) {
                sum += w.to_f32() * x;
            }
            dots[m][r] = sum;
        }
    }
    dots
}

/// Rows of the matrix are contiguous: the sums grow row by row, four rows at a time.
struct Axpys<'a, T, const M: usize>(Side<'a, T>);

impl<T: Float, const M: usize> Work for Axpys<'_, T, M> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Side { w, stride, from, x, k, sums, n } = self.0;
        sums.fill(0.0);
        let whole = k / 4 * 4;
        for at in (0..whole).step_by(4) {
            add_rows::<S, T, 4, M>(s, &w[at * stride + from..], stride, &x[at..], k, &mut *sums, n);
        }
        for at in whole..k {
            add_rows::<S, T, 1, M>(s, &w[at * stride + from..], stride, &x[at..], k, &mut *sums, n);
        }
    }
}

/// `sums[m] += x[m][0..R] @ w[0..R]`.
#[inline(always)]
fn add_rows<S: Simd, T: Float, const R: usize, const M: usize>(
    s: S,
    w: &[T],
    stride: usize,
    x: &[f32],
    k: usize,
    sums: &mut [f32],
    n: usize,
) {
    let whole = n / S::LANES * S::LANES;
    let mut rows: [&[T]; R] = [&[]; R];
    let mut factors = [[0.0; R]; M];
    for r in 0..R {
        rows[r] = &w[r * stride..][..n];
        for m in 0..M {
            factors[m][r] = x[m * k + r];
        }
    }
    for at in (0..whole).step_by(S::LANES) {
        let mut w = [s.zero(); R];
        for r in 0..R {
            w[r] = T::load(s, &rows[r][at..at + S::LANES]);
        }
        for m in 0..M {
            let to = &mut sums[m * n + at..m * n + at + S::LANES];
            let mut sum = s.load(to);
            for r in 0..R {
                sum = s.fma(s.splat(factors[m][r]), w[r], sum);
            }
            s.store(sum, to);
        }
    }
    for at in whole..n {
        for m in 0..M {
            for r in 0..R {
                sums[m * n + at] += factors[m][r] * rows[r][at].to_f32();
            }
        }
    }
}

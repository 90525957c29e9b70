//! `x @ W` with a quantized `W` `[k, n]`, packed along `n`: rows of weights are unpacked and added up, scaled by `x`.

use crate::dtype::{Floats, FloatsMut, each_float};
use crate::error::{Check, ShapeError};
use crate::gemm::{Factors, dequant_row, gemm};
use crate::level::{Level, Work};
use crate::matrix::{MatMut, MatRef};
use crate::ops::Narrow;
use crate::pool::Pool;
use crate::quant::matvec::CopyRow;
use crate::quant::{MAX_ROWS, QuantMatrix, Staged, each_format};
use crate::raw::Tiles;
use crate::scratch;
use crate::simd::{BLOCK, Simd};

/// Columns of a task: a multiple of every group.
const STRIP: usize = 256;
/// From here on weights are unpacked once and multiplied densely.
const MANY: usize = 16;
/// Columns that are unpacked at a time then.
const CHUNK: usize = 512;

/// `out = x @ w`, computed in f32: `x` is `[m, k]`, `w` is `[k, n]`, `out` is `[m, n]`.
///
/// # Errors
/// If the shapes do not fit together.
pub fn qmm_plain(level: Level, x: MatRef<'_>, w: &QuantMatrix<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    let check = Check("quantized matmul");
    let [k, n] = w.shape();
    check.equal("columns of x", x.cols, k)?;
    check.equal("rows of out", out.rows, x.rows)?;
    check.equal("columns of out", out.cols, n)?;
    let MatMut { data, rows, cols, stride } = out;
    each_float!(FloatsMut, data, y => {
        if rows > MANY {
            for first in (0..cols).step_by(CHUNK) {
                let part = MatMut::strided(FloatsMut::from(&mut y[first..]), [rows, CHUNK.min(cols - first)], stride)?;
                many_rows(level, x, w, first, part)?;
            }
            return Ok(());
        }
        for first in (0..rows).step_by(MAX_ROWS) {
            let m = MAX_ROWS.min(rows - first);
            let tiles = Tiles::new(&mut y[first * stride..], [m, cols], stride, [m, STRIP]);
            scratch::with(m * k, |buffer| {
                for (r, to) in buffer.chunks_exact_mut(k.max(1)).enumerate() {
                    let start = (first + r) * x.row_stride;
                    level.run(CopyRow { from: x.data, start, stride: x.col_stride, format: None, to });
                }
                let x = &*buffer;
                Pool::global().parallel(tiles.count(), |i| {
                    let Some(mut tile) = tiles.claim(i) else { return };
                    let ([_, first], [_, cols]) = (tile.origin(), tile.shape());
                    let mut sums = [[0.0; STRIP]; MAX_ROWS];
                    each_format!(w.format(), F => level.run(Columns::<F, WORDS> { w, x, m, first, cols, sums: &mut sums }));
                    for (r, sums) in sums.iter().enumerate().take(m) {
                        level.run(Narrow { from: &sums[..cols], to: tile.row(r) });
                    }
                });
            });
        }
    });
    Ok(())
}

/// Sums of `cols` columns from `first` on.
struct Columns<'a, const FORMAT: u8, const WORDS: usize> {
    w: &'a QuantMatrix<'a>,
    x: &'a [f32],
    m: usize,
    first: usize,
    cols: usize,
    sums: &'a mut [[f32; STRIP]; MAX_ROWS],
}

impl<const FORMAT: u8, const WORDS: usize> Work for Columns<'_, FORMAT, WORDS> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let k = self.w.shape()[0];
        let mut staged = Staged::EMPTY;
        let mut rows = [[0.0; STRIP]; 4];
        for at in (0..k).step_by(4) {
            let count = 4.min(k - at);
            for (r, row) in rows.iter_mut().enumerate() {
                if r < count {
                    let to = &mut row[..self.cols];
                    dequant_row::<S, FORMAT, WORDS>(s, self.w, at + r, self.first, to, &mut staged);
                } else {
                    row.fill(0.0);
                }
            }
            for m in 0..self.m {
                let mut x = [s.zero(); 4];
                for (r, x) in x.iter_mut().enumerate().take(count) {
                    *x = s.splat(self.x[m * k + at + r]);
                }
                for c in (0..self.cols).step_by(S::LANES) {
                    let mut sum = s.load(&self.sums[m][c..]);
                    for r in 0..4 {
                        sum = s.fma(x[r], s.load(&rows[r][c..]), sum);
                    }
                    s.store(sum, &mut self.sums[m][c..]);
                }
            }
        }
        for sums in self.sums.iter_mut().take(self.m) {
            natural(s, FORMAT, &mut sums[..self.cols]);
        }
    }
}

/// Puts unpacked blocks into the order in which they are stored.
#[inline(always)]
fn natural<S: Simd>(s: S, format: u8, row: &mut [f32]) {
    if s.even_odd(format) {
        for block in row.as_chunks_mut::<BLOCK>().0 {
            let old = *block;
            for i in 0..BLOCK / 2 {
                block[2 * i] = old[i];
                block[2 * i + 1] = old[i + BLOCK / 2];
            }
        }
    }
}

/// Unpacks some columns and multiplies them densely.
fn many_rows(
    level: Level,
    x: MatRef<'_>,
    w: &QuantMatrix<'_>,
    first: usize,
    out: MatMut<'_>,
) -> Result<(), ShapeError> {
    let (k, n) = (x.cols, out.cols);
    scratch::with(k * n, |dense| {
        let tiles = Tiles::new(dense, [k, n], n, [64, n]);
        Pool::global().parallel(tiles.count(), |i| {
            let Some(mut tile) = tiles.claim(i) else { return };
            let (at, rows) = (tile.origin()[0], tile.shape()[0]);
            for r in 0..rows {
                each_format!(w.format(), F => {
                    level.run(Unpack::<F, WORDS> { w, row: at + r, first, to: tile.row(r) });
                });
            }
        });
        drop(tiles);
        gemm(level, x, MatRef::new(Floats::F32(dense), k, n)?, out, Factors::default())
    })
}

struct Unpack<'a, const FORMAT: u8, const WORDS: usize> {
    w: &'a QuantMatrix<'a>,
    row: usize,
    first: usize,
    to: &'a mut [f32],
}

impl<const FORMAT: u8, const WORDS: usize> Work for Unpack<'_, FORMAT, WORDS> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut staged = Staged::EMPTY;
        dequant_row::<S, FORMAT, WORDS>(s, self.w, self.row, self.first, self.to, &mut staged);
        natural(s, FORMAT, self.to);
    }
}

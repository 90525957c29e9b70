//! Products of f64 matrices. One operand is packed into panels once, the other block by block by each task; a tile of sums
//! lives in registers. Written over arrays that the compiler turns into the level's vectors.

use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::pool::Pool;
use crate::raw::{Tile, Tiles};
use crate::simd::Simd;

/// A read-only view of a matrix of any element: `data[r * strides[0] + c * strides[1]]`.
#[derive(Debug, Clone, Copy)]
pub struct Strided<'a, T> {
    pub(super) data: &'a [T],
    pub(super) shape: [usize; 2],
    pub(super) strides: [usize; 2],
}

impl<'a, T> Strided<'a, T> {
    /// A matrix of `shape` with steps between its rows and between its columns.
    ///
    /// # Errors
    /// If an element lies past the end of `data`.
    pub fn new(data: &'a [T], shape: [usize; 2], strides: [usize; 2]) -> Result<Self, ShapeError> {
        Check("matrix").at_least("data length", data.len(), crate::matrix::extent(shape, strides))?;
        Ok(Self { data, shape, strides })
    }

    /// The transpose, without a copy.
    #[must_use]
    pub fn t(self) -> Self {
        let ([rows, cols], [down, right]) = (self.shape, self.strides);
        Self { shape: [cols, rows], strides: [right, down], ..self }
    }
}

/// The shared dimension that is packed at a time.
const DEPTH: usize = 256;
/// Columns that are packed at a time.
const COLUMNS: usize = 512;
/// Rows of a task at most: a multiple of every tile's.
const ROWS: usize = 96;

/// `out = alpha * a @ b + beta * out` in f64: `a` is `[m, k]`, `b` is `[k, n]`, rows of `out` are `stride` apart.
/// With `beta` 0 `out` is not read.
///
/// # Errors
/// If the shapes do not fit together.
pub fn gemm_f64(
    level: Level,
    a: Strided<'_, f64>,
    b: Strided<'_, f64>,
    out: &mut [f64],
    stride: usize,
    [alpha, beta]: [f64; 2],
) -> Result<(), ShapeError> {
    let ([m, k], [_, n]) = (a.shape, b.shape);
    let check = Check("matmul");
    check.equal("rows of b", b.shape[0], k)?;
    check.at_least("row stride of out", stride, if m > 1 { n } else { 0 })?;
    check.at_least("out length", out.len(), crate::matrix::extent([m, n], [stride, 1]))?;
    if m == 0 {
        return Ok(());
    }
    let [tile_rows, width] = level.run(TileShape);
    let pool = Pool::global();
    let row_step = m.div_ceil(pool.threads() * 2).clamp(1, ROWS).next_multiple_of(tile_rows);
    let mut packed = vec![0.0; COLUMNS.min(n.next_multiple_of(width)) * DEPTH.min(k)];
    for first in (0..n).step_by(COLUMNS) {
        let cols = COLUMNS.min(n - first);
        // With nothing to add up there still is `out` to scale.
        for (block, from) in (0..k.max(1)).step_by(DEPTH).enumerate() {
            let depth = DEPTH.min(k - from);
            let panels =
                Tiles::new(&mut packed, [cols.div_ceil(width), depth * width], depth * width, [1, depth * width]);
            pool.parallel(panels.count(), |i| {
                let Some(mut panel) = panels.claim(i) else { return };
                let (lane, lanes) = (first + i * width, width.min(cols - i * width));
                for (d, to) in panel.row(0).chunks_exact_mut(width).enumerate() {
                    let start = (from + d) * b.strides[0] + lane * b.strides[1];
                    to[lanes..].fill(0.0);
                    to[..lanes].iter_mut().enumerate().for_each(|(l, y)| *y = b.data[start + l * b.strides[1]]);
                }
            });
            drop(panels);
            let beta = if block == 0 { beta } else { 1.0 };
            let tiles = Tiles::new(&mut out[first..], [m, cols], stride, [row_step, cols]);
            pool.parallel(tiles.count(), |i| {
                let Some(tile) = tiles.claim(i) else { return };
                level.run(Task { a: &a, from, depth, packed: &packed, tile, alpha, beta });
            });
        }
    }
    Ok(())
}

/// Rows and columns of a level's tile.
struct TileShape;

impl Work for TileShape {
    type Out = [usize; 2];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [usize; 2] {
        match S::TILE_ROWS {
            12 => [12, 16],
            8 => [8, 4],
            6 => [6, 8],
            _ => [4, 4],
        }
    }
}

/// Some rows of the product with one block of depth.
struct Task<'a, 't> {
    a: &'a Strided<'a, f64>,
    from: usize,
    depth: usize,
    packed: &'a [f64],
    tile: Tile<'t, f64>,
    alpha: f64,
    beta: f64,
}

impl Work for Task<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        match S::TILE_ROWS {
            12 => self.tiles::<12, 16, true>(),
            8 => self.tiles::<8, 4, true>(),
            6 => self.tiles::<6, 8, true>(),
            _ => self.tiles::<4, 4, false>(),
        }
    }
}

impl Task<'_, '_> {
    #[inline(always)]
    fn tiles<const R: usize, const W: usize, const FUSED: bool>(mut self) {
        let ([first, _], [rows, cols]) = (self.tile.origin(), self.tile.shape());
        let ([down, right], depth) = (self.a.strides, self.depth);
        let mut side = vec![[0.0; R]; depth];
        for row in (0..rows).step_by(R) {
            let count = R.min(rows - row);
            for (d, to) in side.iter_mut().enumerate() {
                let start = (first + row) * down + (self.from + d) * right;
                for (r, y) in to.iter_mut().enumerate().take(count) {
                    *y = self.a.data[start + r * down];
                }
            }
            for (p, col) in (0..cols).step_by(W).enumerate() {
                let panel = self.packed[p * depth * W..(p + 1) * depth * W].as_chunks::<W>().0;
                let sums = product::<R, W, FUSED>(&side, panel);
                let width = W.min(cols - col);
                for (r, sums) in sums.iter().enumerate().take(count) {
                    for (y, x) in self.tile.row(row + r)[col..col + width].iter_mut().zip(sums) {
                        *y = self.alpha * x + if self.beta == 0.0 { 0.0 } else { self.beta * *y };
                    }
                }
            }
        }
    }
}

/// `FUSED` where the level has fused products: elsewhere `mul_add` is a call into a library.
#[inline(always)]
fn product<const R: usize, const W: usize, const FUSED: bool>(side: &[[f64; R]], panel: &[[f64; W]]) -> [[f64; W]; R] {
    let mut sums = [[0.0; W]; R];
    for (x, lanes) in side.iter().zip(panel) {
        for r in 0..R {
            for w in 0..W {
                let sum = sums[r][w];
                sums[r][w] = if FUSED { x[r].mul_add(lanes[w], sum) } else { x[r] * lanes[w] + sum };
            }
        }
    }
    sums
}

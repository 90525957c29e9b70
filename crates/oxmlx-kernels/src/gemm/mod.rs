//! Matrix products: `out = alpha * a @ b + beta * out` with f32 sums, for f32, f16 and bf16 in any mix.
//!
//! A few rows go through `matvec` (bound by memory). The rest is packed: one operand into *panels* whose lanes are vector
//! lanes, the other into rows whose elements are broadcast; `tile` multiplies them. Quantized weights are rows that are
//! unpacked while they are packed. f64 and complex matrices have functions of their own.

mod batch;
mod complex;
mod double;
mod matvec;
mod pack;
mod tile;

use crate::dtype::{Float, each_float};
use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::matrix::{MatMut, MatRef};
use crate::pool::Pool;
use crate::raw::{Tile, Tiles};
use crate::scratch;
use crate::simd::Simd;

pub use batch::gemm_batch;
pub use complex::{Complex, gemm_complex};
pub use double::{Strided, gemm_f64};
pub(crate) use matvec::{Side, dots};
pub(crate) use pack::{PackLanes, Rows, dequant_row};
pub(crate) use tile::{Block, DEPTH, STRIDE};

/// Factors of a product: `out = alpha * a @ b + beta * out`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// Multiplies the product.
    pub alpha: f32,
    /// Multiplies what `out` held; with 0 it is not read, so it may hold NaN.
    pub beta: f32,
}

impl Default for Factors {
    fn default() -> Self {
        Self { alpha: 1.0, beta: 0.0 }
    }
}

/// `out = alpha * a @ b + beta * out`: `a` is `[m, k]`, `b` is `[k, n]`, `out` is `[m, n]`. Sums are f32.
///
/// A transposed operand is a view: [`MatRef::t`].
///
/// # Errors
/// If the shapes do not fit together.
pub fn gemm(level: Level, a: MatRef<'_>, b: MatRef<'_>, out: MatMut<'_>, factors: Factors) -> Result<(), ShapeError> {
    let check = Check("matmul");
    check.equal("rows of b", b.rows, a.cols)?;
    check.equal("rows of out", out.rows, a.rows)?;
    check.equal("columns of out", out.cols, b.cols)?;
    if out.rows == 0 || out.cols == 0 {
        return Ok(());
    }
    if a.rows <= matvec::MAX_ROWS && (b.row_stride == 1 || b.col_stride == 1) {
        matvec::few_rows(level, &a, &b, out, factors);
        return Ok(());
    }
    // Rows whose elements lie side by side are cheap to pack, whatever their number; so are lanes that do.
    let flip = b.row_stride == 1 && b.col_stride != 1;
    let (rows, lanes) = if flip { (b.t(), a) } else { (a, b.t()) };
    packed(level, Rows::Dense(rows), &lanes, Target { out, flip, factors });
    Ok(())
}

/// Where a packed product goes. With `flip`, `out` is `[lanes, rows]`.
pub(crate) struct Target<'a> {
    pub(crate) out: MatMut<'a>,
    pub(crate) flip: bool,
    pub(crate) factors: Factors,
}

/// Lanes that are packed at a time.
const LANE_CHUNK: usize = 512;
/// Rows of a task at most.
const ROW_CHUNK: usize = 96;

/// Products of all rows with all lanes (`[lanes, k]`); the shapes fit.
pub(crate) fn packed(level: Level, rows: Rows<'_>, lanes: &MatRef<'_>, target: Target<'_>) {
    let Target { out, flip, factors } = target;
    let MatMut { data, rows: out_rows, cols: out_cols, stride } = out;
    let (width, tile_rows) = shape(level);
    let threads = Pool::global().threads();
    let row_step = rows.count().div_ceil(threads * 2).clamp(1, ROW_CHUNK).next_multiple_of(tile_rows);
    let row_blocks = rows.count().div_ceil(row_step);
    each_float!(FloatsMut, data, y => {
        for first in (0..lanes.rows).step_by(LANE_CHUNK) {
            let count = LANE_CHUNK.min(lanes.rows - first);
            // Few row blocks: cut the lanes too, so that every thread has work.
            let cuts = (threads * 2).div_ceil(row_blocks).min(count.div_ceil(width));
            let lane_step = count.div_ceil(cuts).next_multiple_of(width);
            let part = MatRef {
                rows: count,
                data: lanes.data.window(first * lanes.row_stride, usize::MAX),
                ..*lanes
            };
            let tiles = if flip {
                Tiles::new(&mut y[first * stride..], [count.min(out_rows), out_cols], stride, [lane_step, row_step])
            } else {
                Tiles::new(&mut y[first..], [out_rows, count.min(out_cols)], stride, [row_step, lane_step])
            };
            chunk(level, &rows, &part, Cut { tiles, flip, factors, width, tile_rows });
        }
    });
}

/// One chunk of lanes, and how its products are cut into tasks.
struct Cut<'a, T> {
    tiles: Tiles<'a, T>,
    flip: bool,
    factors: Factors,
    width: usize,
    tile_rows: usize,
}

fn chunk<T: Float>(level: Level, rows: &Rows<'_>, lanes: &MatRef<'_>, cut: Cut<'_, T>) {
    let k = lanes.cols;
    let most = rows.depth();
    let blocks = k.div_ceil(most).max(1);
    // Whole groups of quantized weights: 128 is a multiple of every group.
    let depth = k.div_ceil(blocks).next_multiple_of(if k > most { most.min(128) } else { 1 }).max(1);
    let panels = lanes.rows.div_ceil(cut.width);
    let panel_step = depth * cut.width;
    scratch::with(panels * panel_step * blocks, |packed| {
        // Block by block, panel by panel.
        let store = Tiles::new(packed, [blocks * panels, panel_step], panel_step, [1, panel_step]);
        Pool::global().parallel(store.count(), |i| {
            let Some(mut tile) = store.claim(i) else { return };
            let (from, first) = (i / panels * depth, i % panels * cut.width);
            let depth = depth.min(k.saturating_sub(from));
            level.run(PackLanes { lanes, format: rows.format(), first, from, depth, to: tile.row(0) });
        });
        drop(store);
        let packed = &*packed;
        Pool::global().parallel(cut.tiles.count(), |i| {
            let Some(mut tile) = cut.tiles.claim(i) else { return };
            let ([a, b], [na, nb]) = (tile.origin(), tile.shape());
            let ([row, row_count], [lane, lane_count]) = if cut.flip { ([b, nb], [a, na]) } else { ([a, na], [b, nb]) };
            let padded = row_count.next_multiple_of(cut.tile_rows);
            let used = lane_count.div_ceil(cut.width);
            scratch::with(padded * (STRIDE + used * cut.width), |buffer| {
                let (side, sums) = buffer.split_at_mut(padded * STRIDE);
                side[row_count * STRIDE..].fill(0.0);
                for block in 0..blocks {
                    let from = block * depth;
                    let depth = depth.min(k.saturating_sub(from));
                    rows.pack(level, [row, row_count], [from, depth], side);
                    let start = (block * panels + lane / cut.width) * panel_step;
                    level.run(Block {
                        rows: side,
                        panels: &packed[start..start + used * panel_step],
                        panel_step,
                        depth,
                        sums,
                        sums_stride: used * cut.width,
                        first: block == 0,
                    });
                }
                finish(level, sums, used * cut.width, &mut tile, (cut.flip, cut.factors));
            });
        });
    });
}

/// Stores sums `[rows][stride]` into a tile, exchanged if it is flipped.
fn finish<T: Float>(level: Level, sums: &[f32], stride: usize, tile: &mut Tile<'_, T>, how: (bool, Factors)) {
    let (flip, factors) = how;
    let [rows, cols] = tile.shape();
    if !flip {
        for r in 0..rows {
            level.run(Blend { from: &sums[r * stride..r * stride + cols], to: tile.row(r), factors });
        }
        return;
    }
    let mut line = [0.0; ROW_CHUNK * 2];
    for r in 0..rows {
        let line = &mut line[..cols];
        for (c, y) in line.iter_mut().enumerate() {
            *y = sums[c * stride + r];
        }
        level.run(Blend { from: line, to: tile.row(r), factors });
    }
}

/// `to = alpha * from + beta * to`.
pub(crate) struct Blend<'a, T> {
    pub(crate) from: &'a [f32],
    pub(crate) to: &'a mut [T],
    pub(crate) factors: Factors,
}

impl<T: Float> Work for Blend<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Factors { alpha, beta } = self.factors;
        if alpha == 1.0 && beta == 0.0 {
            return crate::dtype::narrow(s, self.from, self.to);
        }
        for (x, y) in self.from.iter().zip(self.to) {
            let old = if beta == 0.0 { 0.0 } else { beta * y.to_f32() };
            *y = T::from_f32(alpha * x + old);
        }
    }
}

/// Lanes of a panel and rows of a tile at a level.
pub(crate) fn shape(level: Level) -> (usize, usize) {
    level.run(Shape)
}

struct Shape;

impl Work for Shape {
    type Out = (usize, usize);

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (usize, usize) {
        (2 * S::LANES, S::TILE_ROWS)
    }
}

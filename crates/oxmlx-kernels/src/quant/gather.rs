//! Products in which each block of rows chooses its own matrix: mixtures of experts.

use crate::dtype::{Float, FloatsMut, each_float};
use crate::error::{Check, ShapeError};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef};
use crate::ops::Narrow;
use crate::pool::Pool;
use crate::quant::matvec::CopyRow;
use crate::quant::{MAX_ROWS, Prepared, QuantMatrix, product_rows, qmm, qmm_plain};
use crate::raw::Tiles;
use crate::scratch;

/// Which block of `x` meets which matrix; see [`gather_qmm`].
#[derive(Debug, Clone, Copy)]
pub struct Gather<'a> {
    /// Matrices stacked on each other in `w`.
    pub matrices: usize,
    /// Rows of a block.
    pub rows: usize,
    /// The block of `x` for each result.
    pub lhs: &'a [u32],
    /// The matrix for each result.
    pub rhs: &'a [u32],
    /// Whether matrices are `[n, k]` and meet `x` transposed.
    pub transpose: bool,
}

/// Rows of a matrix whose products are gathered before they are stored.
const STRIP: usize = 64;
/// Rows that choose one matrix from which on they are multiplied together.
const TOGETHER: usize = 24;

/// Result block `i` is `x[lhs[i]] @ w[rhs[i]]^T` (or `@ w[rhs[i]]`): `x` is `[blocks * rows, k]`, `w` is `[matrices * n, k]`
/// (or `[matrices * k, n]`), `out` is `[lhs.len() * rows, n]`.
///
/// # Errors
/// If the shapes do not fit together, or an index is out of range.
pub fn gather_qmm(
    level: Level,
    x: MatRef<'_>,
    w: &QuantMatrix<'_>,
    gather: Gather<'_>,
    out: MatMut<'_>,
) -> Result<(), ShapeError> {
    let check = Check("gather quantized matmul");
    let Gather { matrices, rows, lhs, rhs, transpose } = gather;
    let [stacked, cols] = w.shape();
    check.multiple("rows of w", stacked, matrices)?;
    let each = stacked / matrices;
    let [n, k] = if transpose { [each, cols] } else { [cols, each] };
    check.equal("columns of x", x.cols, k)?;
    check.equal("length of rhs indices", rhs.len(), lhs.len())?;
    check.equal("rows of out", out.rows, lhs.len() * rows)?;
    check.equal("columns of out", out.cols, n)?;
    for (&l, &r) in lhs.iter().zip(rhs) {
        check.at_most("end of a block of x", (l as usize + 1).saturating_mul(rows), x.rows)?;
        check.at_most("matrix index", r as usize, matrices - 1)?;
    }
    // Row by row: (matrix, row of x, row of out), neighbours sharing a matrix.
    let mut plan: Vec<[usize; 3]> =
        (0..lhs.len() * rows).map(|i| [rhs[i / rows] as usize, lhs[i / rows] as usize * rows + i % rows, i]).collect();
    plan.sort_unstable();
    let MatMut { data, rows: out_rows, stride, .. } = out;
    let step = n.div_ceil(Pool::global().threads() * 2).next_multiple_of(STRIP);
    let groups: Vec<&[[usize; 3]]> = plan.chunk_by(|a, b| a[0] == b[0]).collect();
    let (apart, together): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| transpose && group.len() <= TOGETHER);
    each_float!(FloatsMut, data, y => {
        let tiles = Tiles::new(y, [out_rows, n], stride, [1, step]);
        let chunks: Vec<&[[usize; 3]]> = apart.iter().flat_map(|group| group.chunks(MAX_ROWS)).collect();
        few_rows(level, &x, (w, each), &chunks, &tiles);
        for group in &together {
            let matrix = w.window(group[0][0] * each, each);
            many_rows(level, &x, (&matrix, transpose), group, &tiles)?;
        }
    });
    Ok(())
}

/// Products of chunks of at most 8 rows, all in one fork-join.
fn few_rows<T: Float>(
    level: Level,
    x: &MatRef<'_>,
    (w, each): (&QuantMatrix<'_>, usize),
    chunks: &[&[[usize; 3]]],
    tiles: &Tiles<'_, T>,
) {
    let across = tiles.across();
    let size = Prepared::size(MAX_ROWS, x.cols);
    scratch::with(chunks.len() * size, |buffer| {
        let prepared: Vec<Prepared<'_>> = chunks
            .iter()
            .zip(buffer.chunks_exact_mut(size.max(1)))
            .map(|(chunk, buffer)| {
                for (&[_, row, _], to) in chunk.iter().zip(buffer.chunks_exact_mut(x.cols)) {
                    let start = row * x.row_stride;
                    level.run(CopyRow { from: x.data, start, stride: x.col_stride, format: Some(w.format()), to });
                }
                let padded = chunk.len().next_power_of_two();
                buffer[chunk.len() * x.cols..padded * x.cols].fill(0.0);
                Prepared { data: buffer, cols: x.cols, padded }
            })
            .collect();
        Pool::global().parallel(prepared.len() * across, |i| {
            let (chunk, x, part) = (chunks[i / across], prepared[i / across], i % across);
            let matrix = w.window(chunk[0][0] * each, each);
            let mut rows: Vec<_> = chunk.iter().filter_map(|[_, _, out]| tiles.claim(out * across + part)).collect();
            let Some(first) = rows.first() else { return };
            let ([_, first], [_, cols]) = (first.origin(), first.shape());
            let mut products = [0.0; MAX_ROWS * STRIP];
            for start in (0..cols).step_by(STRIP) {
                let n = STRIP.min(cols - start);
                product_rows(level, &matrix, first + start, x, &mut products[..x.padded * n], n);
                for (m, row) in rows.iter_mut().enumerate() {
                    let from = &products[m * n..(m + 1) * n];
                    level.run(Narrow { from, to: &mut row.row(0)[start..start + n] });
                }
            }
        });
    });
}

/// Products of rows that all choose one matrix: copied together, multiplied, and put where they belong.
fn many_rows<T: Float>(
    level: Level,
    x: &MatRef<'_>,
    (w, transpose): (&QuantMatrix<'_>, bool),
    group: &[[usize; 3]],
    tiles: &Tiles<'_, T>,
) -> Result<(), ShapeError> {
    let (m, k) = (group.len(), x.cols);
    let n = if transpose { w.shape()[0] } else { w.shape()[1] };
    scratch::with(m * (k + n), |buffer| {
        let (rows, products) = buffer.split_at_mut(m * k);
        for (&[_, row, _], to) in group.iter().zip(rows.chunks_exact_mut(k.max(1))) {
            let start = row * x.row_stride;
            level.run(CopyRow { from: x.data, start, stride: x.col_stride, format: None, to });
        }
        let rows = MatRef::new(crate::dtype::Floats::F32(rows), m, k)?;
        let out = MatMut::new(FloatsMut::F32(products), m, n)?;
        if transpose {
            qmm(level, rows, w, out)?
        } else {
            qmm_plain(level, rows, w, out)?
        }
        for ([_, _, out], from) in group.iter().zip(products.chunks_exact(n.max(1))) {
            for part in 0..tiles.across() {
                let Some(mut tile) = tiles.claim(out * tiles.across() + part) else { continue };
                let (first, cols) = (tile.origin()[1], tile.shape()[1]);
                level.run(Narrow { from: &from[first..first + cols], to: tile.row(0) });
            }
        }
        Ok(())
    })
}

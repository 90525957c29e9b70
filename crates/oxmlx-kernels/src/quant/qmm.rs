//! `x @ W^T` with a quantized `W`, for any number of rows.

use crate::dtype::{Float, each_float};
use crate::error::{Check, ShapeError};
use crate::gemm::{Factors, Rows, Target, packed};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef};
use crate::ops::Narrow;
use crate::pool::Pool;
use crate::quant::matvec::MAX_ROWS;
use crate::quant::{Prepared, QuantMatrix, product_rows};
use crate::raw::Tiles;
use crate::scratch;

/// Up to here rows of `x` are multiplied 8 at a time.
const FEW: usize = 24;
/// Rows of weights whose products are gathered before they are stored.
const STRIP: usize = 64;

/// `out = x @ w^T`, computed in f32: `x` is `[m, k]`, `w` is `[n, k]`, `out` is `[m, n]`.
///
/// # Errors
/// If the shapes do not fit together.
pub fn qmm(level: Level, x: MatRef<'_>, w: &QuantMatrix<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    let check = Check("quantized matmul");
    let [n, k] = w.shape();
    check.equal("columns of x", x.cols, k)?;
    check.equal("rows of out", out.rows, x.rows)?;
    check.equal("columns of out", out.cols, n)?;
    if x.rows > FEW {
        packed(level, Rows::Quant(w), &x, Target { out, flip: true, factors: Factors::default() });
        return Ok(());
    }
    let MatMut { data, rows, cols, stride } = out;
    each_float!(FloatsMut, data, y => {
        let mut first = 0;
        while first < rows {
            let count = MAX_ROWS.min(rows - first);
            few_rows(level, &x, first, w, Tiles::new(&mut y[first * stride..], [count, cols], stride, [count, step(w)]));
            first += count;
        }
    });
    Ok(())
}

/// Rows of weights a task: enough tasks for an even load, each large enough to be worth handing over.
pub(crate) fn step(w: &QuantMatrix<'_>) -> usize {
    let [n, _] = w.shape();
    let row_bytes = w.bytes() / n.max(1) + 1;
    let even = n.div_ceil(Pool::global().threads() * 4);
    even.max(8192 / row_bytes).max(4).next_multiple_of(4)
}

/// Products of at most 8 rows of `x`.
fn few_rows<T: Float>(level: Level, x: &MatRef<'_>, first: usize, w: &QuantMatrix<'_>, tiles: Tiles<'_, T>) {
    let rows = MAX_ROWS.min(x.rows - first);
    scratch::with(Prepared::size(rows, x.cols), |buffer| {
        let x = Prepared::copy(level, w.format(), x, first, rows, buffer);
        Pool::global().parallel(tiles.count(), |index| {
            let Some(mut tile) = tiles.claim(index) else { return };
            let ([_, first], [rows, cols]) = (tile.origin(), tile.shape());
            let mut products = [0.0; MAX_ROWS * STRIP];
            for start in (0..cols).step_by(STRIP) {
                let n = STRIP.min(cols - start);
                product_rows(level, w, first + start, x, &mut products[..rows * n], n);
                for m in 0..rows {
                    level.run(Narrow { from: &products[m * n..(m + 1) * n], to: &mut tile.row(m)[start..start + n] });
                }
            }
        });
    });
}

//! Many products of one shape.

use crate::dtype::{FloatsMut, each_float};
use crate::error::{Check, ShapeError};
use crate::gemm::{Factors, gemm};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef};
use crate::pool::Pool;
use crate::raw::Tiles;

/// Multiplications of a product below which products run beside each other and not one after the other.
const SMALL: usize = 1 << 21;

/// `out[i] = alpha * a(i) @ b(i) + beta * out[i]` for `i` below `count`: `out` is `[count, m, n]`, without gaps.
///
/// # Errors
/// If the shapes do not fit together, or `out` has another length.
pub fn gemm_batch<'a>(
    level: Level,
    count: usize,
    operands: impl Fn(usize) -> Result<[MatRef<'a>; 2], ShapeError> + Sync,
    out: FloatsMut<'_>,
    factors: Factors,
) -> Result<(), ShapeError> {
    if count == 0 || out.is_empty() {
        return Ok(());
    }
    let [a, b] = operands(0)?;
    let [m, k, n] = [a.rows, a.cols, b.cols];
    let check = Check("matmul");
    check.equal("length of out", out.len(), count.saturating_mul(m).saturating_mul(n))?;
    let one = |i: usize, out: FloatsMut<'_>| -> Result<(), ShapeError> {
        let [a, b] = operands(i)?;
        gemm(level, a, b, MatMut::new(out, m, n)?, factors)
    };
    each_float!(FloatsMut, out, y => {
        if m * n * k > SMALL {
            return y.chunks_exact_mut(m * n).enumerate().try_for_each(|(i, y)| one(i, y.into()));
        }
        // A product inside of a task runs on that task's thread.
        let tiles = Tiles::new(y, [count, m * n], m * n, [1, m * n]);
        let failed = std::sync::OnceLock::new();
        Pool::global().parallel(count, |i| {
            let Some(mut tile) = tiles.claim(i) else { return };
            if let Err(error) = one(i, tile.row(0).into()) {
                // The first is kept.
                let _ = failed.set(error);
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    })
}

//! The index of the largest element of each row.

use crate::dtype::{Float, each_float};
use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::simd::Simd;

/// The index of the first largest element of each row; NaN counts as smaller than all, a row of NaN gives 0.
///
/// # Errors
/// If `out` is not as long as `x` has rows, a row is empty, or the columns are not contiguous.
pub fn argmax(level: Level, x: MatRef<'_>, out: &mut [u32]) -> Result<(), ShapeError> {
    let check = Check("argmax");
    check.equal("length of out", out.len(), x.rows)?;
    check.at_least("columns", x.cols, usize::from(x.rows > 0))?;
    check.at_most("columns", x.cols, u32::MAX as usize)?;
    if x.cols > 1 {
        check.equal("column stride", x.col_stride, 1)?;
    }
    for (r, y) in out.iter_mut().enumerate() {
        let row = x.data.window(r * x.row_stride, x.cols);
        *y = each_float!(Floats, row, x => level.run(Largest(x))) as u32;
    }
    Ok(())
}

struct Largest<'a, T>(&'a [T]);

/// Elements looked through before the best is updated.
const STEP: usize = 256;

impl<T: Float> Work for Largest<'_, T> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let mut best = (f32::NEG_INFINITY, 0);
        for (i, chunk) in self.0.chunks(STEP).enumerate() {
            let mut wide = [f32::NEG_INFINITY; STEP];
            crate::dtype::widen(s, chunk, &mut wide);
            let mut top = s.splat(f32::NEG_INFINITY);
            for x in wide.chunks_exact(S::LANES) {
                top = s.max(s.load(x), top);
            }
            let top = s.max_lane(top);
            if top > best.0 {
                best = (top, i * STEP + wide.iter().position(|&x| x == top).unwrap_or(0));
            }
        }
        best.1
    }
}

//! The arguments of a BLAS product, checked, as a row-major product of strided matrices.

use std::ffi::c_int;

/// How the matrices of a call lie in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// 101 for row-major, 102 for column-major.
    pub(super) order: c_int,
    /// Of `a` and `b`: 111 as they are, 112 transposed, 113 conjugated too.
    pub(super) trans: [c_int; 2],
    /// Rows of the result, its columns, and the shared dimension.
    pub(super) shape: [c_int; 3],
    /// Leading dimensions of `a`, `b` and the result.
    pub(super) leading: [c_int; 3],
}

/// An operand of the row-major product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Side {
    pub(super) shape: [usize; 2],
    pub(super) strides: [usize; 2],
    pub(super) conjugate: bool,
}

/// `out[rows, cols] = left @ right`, the rows of `out` being `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) a: Side,
    pub(super) b: Side,
    /// Whether the product is `b @ a`: that of column-major matrices, seen as their transposes.
    pub(super) swapped: bool,
    pub(super) shape: [usize; 2],
    pub(super) stride: usize,
}

impl Form {
    /// The plan, or what BLAS forbids about the arguments. `reads` tells whether the operands are read at all.
    pub(super) fn plan(self, reads: bool) -> Result<Plan, &'static str> {
        let swapped = match self.order {
            101 => false,
            102 => true,
            _ => return Err("the order is neither 101 (row-major) nor 102 (column-major)"),
        };
        let size = |n: c_int| usize::try_from(n).map_err(|_| "a size is negative");
        let [m, n, k] = self.shape.map(size);
        let (m, n, k) = (m?, n?, k?);
        let side = |i: usize, [rows, cols]: [usize; 2]| -> Result<Side, &'static str> {
            let (transposed, conjugate) = match self.trans[i] {
                111 => (false, false),
                112 => (true, false),
                113 => (true, true),
                _ => return Err("a transposition is none of 111, 112 and 113"),
            };
            let lines = if transposed != swapped { rows } else { cols };
            let leading = leading(self.leading[i], lines)?;
            let strides = if transposed != swapped { [1, leading] } else { [leading, 1] };
            Ok(Side { shape: [rows, cols], strides, conjugate })
        };
        let (mut a, mut b) = (side(0, [m, k])?, side(1, [k, n])?);
        if !reads {
            (a.shape[1], b.shape[0]) = (0, 0);
        }
        let stride = leading(self.leading[2], if swapped { m } else { n })?;
        let turned = |side: Side| {
            let ([rows, cols], [down, right]) = (side.shape, side.strides);
            if swapped { Side { shape: [cols, rows], strides: [right, down], ..side } } else { side }
        };
        let shape = if swapped { [n, m] } else { [m, n] };
        Ok(Plan { a: turned(a), b: turned(b), swapped, shape, stride })
    }
}

/// A leading dimension of lines of `need` elements.
fn leading(given: c_int, need: usize) -> Result<usize, &'static str> {
    usize::try_from(given).ok().filter(|&given| given >= need.max(1)).ok_or("a leading dimension is too small")
}

/// How many elements there are from the first to the last of a matrix.
pub(super) fn extent(shape: [usize; 2], strides: [usize; 2]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    (shape[0] - 1)
        .saturating_mul(strides[0])
        .saturating_add((shape[1] - 1).saturating_mul(strides[1]))
        .saturating_add(1)
}

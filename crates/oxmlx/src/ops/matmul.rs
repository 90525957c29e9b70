//! Matrix products.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Result};

/// The matrix product.
///
/// Shapes: `[.., m, k]` and `[.., k, n]` give `[.., m, n]`; the leading dimensions broadcast; a vector stands for a row on the left
/// and for a column on the right. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
/// assert_eq!(ops::matmul(&a, &a)?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the inner dimensions differ or an operand is a scalar.
///
/// # Source
/// C++ `mlx::core::matmul` (`mlx/ops.h`).
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    Ok(raw::matmul(&a.0, &b.0)?.into())
}

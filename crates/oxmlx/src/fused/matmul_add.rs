//! A product added to the residual stream.

use super::Matrix;
use crate::{Array, Result, cpu};

/// `residual + x @ matrix^T`.
///
/// Shapes: `x` `[.., k]`, matrix `[n, k]`, `residual` and the result `[.., n]`. Dtypes: floating point; promoted. Lazy. One node on
/// the CPU.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::fused::{Matrix, matmul_add};
/// let (x, m) = (Array::from_slice(&[2.0f32], (1, 1))?, Array::from_slice(&[3.0f32], (1, 1))?);
/// assert_eq!(matmul_add(&x, Matrix::Plain(&m), &x)?.item::<f32>()?, 8.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not fit.
///
/// # Source
/// C++ `mlx::core::matmul` or `mlx::core::quantized_matmul`, and `mlx::core::add`.
pub fn matmul_add(x: &Array, matrix: Matrix<'_>, residual: &Array) -> Result<Array> {
    cpu::matmul_add(x, matrix, residual).unwrap_or_else(|| mlx_matmul_add(x, matrix, residual))
}

pub(crate) fn mlx_matmul_add(x: &Array, matrix: Matrix<'_>, residual: &Array) -> Result<Array> {
    residual + matrix.apply(x)?
}

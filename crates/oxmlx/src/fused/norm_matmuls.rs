//! A norm and the products that share its result.

use super::{Matrix, Norm};
use crate::{Array, Result, cpu};

/// `norm(x) @ m^T` for each matrix `m`: the query, key and value projections of a layer, or the gate and up projections.
///
/// Shapes: `x` `[.., k]`, matrices `[n, k]`, results `[.., n]`. Dtypes: floating point; promoted. Lazy. One node on the CPU.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::fused::{Matrix, Norm, norm_matmuls};
/// let (x, ones) = (Array::from_slice(&[3.0f32, 4.0], (1, 2))?, Array::ones::<f32>(2)?);
/// let sum = Array::from_slice(&[1.0f32, 1.0], (1, 2))?;
/// let y = norm_matmuls(&x, Norm { weight: &ones, eps: 0.0 }, &[Matrix::Plain(&sum)])?;
/// assert!((y[0].item::<f32>()? - 7.0 / 12.5f32.sqrt()).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not fit.
///
/// # Source
/// C++ `mlx::core::fast::rms_norm` and `mlx::core::matmul` or `mlx::core::quantized_matmul`.
pub fn norm_matmuls(x: &Array, norm: Norm<'_>, matrices: &[Matrix<'_>]) -> Result<Vec<Array>> {
    cpu::norm_matmuls(x, norm, matrices).unwrap_or_else(|| mlx_norm_matmuls(x, norm, matrices))
}

pub(crate) fn mlx_norm_matmuls(x: &Array, norm: Norm<'_>, matrices: &[Matrix<'_>]) -> Result<Vec<Array>> {
    let normed = norm.apply(x)?;
    matrices.iter().map(|m| m.apply(&normed)).collect()
}

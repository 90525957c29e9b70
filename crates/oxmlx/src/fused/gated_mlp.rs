//! The gated feed-forward part of a layer.

use super::{Matrix, Norm};
use crate::{Array, Result, cpu, fast};

/// `x + down(silu(gate(n)) * up(n))` with `n = norm(x)`.
///
/// Shapes: `x` and the result `[.., k]`, `gate` and `up` `[m, k]`, `down` `[k, m]`. Dtypes: floating point; promoted. Lazy. One node
/// on the CPU.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::fused::{Matrix, Norm, gated_mlp};
/// let one = Array::ones::<f32>((1, 1))?;
/// let norm = Array::ones::<f32>(1)?;
/// let m = Matrix::Plain(&one);
/// let y = gated_mlp(&one, Norm { weight: &norm, eps: 0.0 }, m, m, m)?;
/// assert!((y.item::<f32>()? - (1.0 + 1.0 / (1.0 + (-1.0f32).exp()))).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not fit.
///
/// # Source
/// Shazeer, GLU Variants Improve Transformer, 2020.
pub fn gated_mlp(x: &Array, norm: Norm<'_>, gate: Matrix<'_>, up: Matrix<'_>, down: Matrix<'_>) -> Result<Array> {
    cpu::gated_mlp(x, norm, [gate, up, down]).unwrap_or_else(|| mlx_gated_mlp(x, norm, [gate, up, down]))
}

pub(crate) fn mlx_gated_mlp(x: &Array, norm: Norm<'_>, [gate, up, down]: [Matrix<'_>; 3]) -> Result<Array> {
    let n = norm.apply(x)?;
    x + down.apply(&fast::swiglu(&gate.apply(&n)?, &up.apply(&n)?)?)?
}

//! Products with a quantized matrix.

use oxmlx_sys::generated::ops as raw;

use super::{Quantized, placed};
use crate::ops::{matrix_indices, zeros};
use crate::{Array, Error, ErrorKind, Result, cpu};

/// `x @ w^T` with a quantized `w`.
///
/// Shapes: `x` `[.., k]` and `w` `[n, k]` give `[.., n]`. Dtypes: `x` floating point. Lazy.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::quantize::{Format, quantize, quantized_matmul};
/// let q = quantize(&Array::ones::<f32>((2, 32))?, Format::Mxfp4)?;
/// assert_eq!(quantized_matmul(&Array::ones::<f32>((1, 32))?, &q)?.to_vec::<f32>()?, [32.0; 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] or [`ErrorKind::Dtype`] for parts that do not fit; [`ErrorKind::InvalidArgument`] when the inner dimensions differ;
/// [`ErrorKind::Unsupported`] for a `w` with a global scale, which [`gather_qmm`] and [`qqmm`](super::qqmm) take on a GPU.
///
/// # Source
/// C++ `mlx::core::quantized_matmul` (`mlx/ops.h`), with `transpose`.
pub fn quantized_matmul(x: &Array, q: &Quantized) -> Result<Array> {
    q.check("quantized_matmul")?;
    product(x, q, true)
}

/// `x @ w` with a quantized `w`: the groups lie along the result's axis.
///
/// Shapes: `x` `[.., k]` and `w` `[k, n]` give `[.., n]`. Dtypes: `x` floating point. Lazy.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::quantize::{Affine, quantize, quantized_matmul_untransposed};
/// let q = quantize(&Array::ones::<f32>((2, 32))?, Affine::new(32, 8)?)?;
/// assert_eq!(quantized_matmul_untransposed(&Array::ones::<f32>((1, 2))?, &q)?.to_vec::<f32>()?, [2.0; 32]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`quantized_matmul`].
///
/// # Source
/// C++ `mlx::core::quantized_matmul` (`mlx/ops.h`), without `transpose`.
pub fn quantized_matmul_untransposed(x: &Array, q: &Quantized) -> Result<Array> {
    q.check("quantized_matmul")?;
    product(x, q, false)
}

fn product(x: &Array, q: &Quantized, transpose: bool) -> Result<Array> {
    placed(q.format, || cpu::quantized_matmul(x, q, transpose).unwrap_or_else(|| mlx_quantized_matmul(x, q, transpose)))
}

/// MLX's own node.
pub(crate) fn mlx_quantized_matmul(x: &Array, q: &Quantized, transpose: bool) -> Result<Array> {
    if q.global_scale.is_some() {
        let text = "MLX's product takes no global scale: use gather_qmm or qqmm on a GPU";
        return Err(Error::new(ErrorKind::Unsupported, "quantized_matmul", text));
    }
    let Quantized { weight, scales, biases, format, .. } = q;
    let ((group, bits), mode) = (format.sizes(), format.mode());
    let biases = biases.as_ref().map(|b| &b.0);
    counted(x, raw::quantized_matmul(&x.0, &weight.0, &scales.0, biases, transpose, group, bits, mode)?.into())
}

/// Zeros where there is nothing to multiply: MLX divides by the number of rows.
fn counted(x: &Array, product: Array) -> Result<Array> {
    if x.size() > 0 && product.size() > 0 { Ok(product) } else { zeros(product.shape(), product.dtype()) }
}

/// Which matrices of two stacks are multiplied.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Picks<'a> {
    lhs: Option<&'a Array>,
    rhs: Option<&'a Array>,
    transpose: bool,
    sorted: bool,
}

impl Default for Picks<'_> {
    fn default() -> Self {
        Self::all()
    }
}

impl<'a> Picks<'a> {
    /// All matrices in their order.
    pub fn all() -> Self {
        Self { lhs: None, rhs: None, transpose: true, sorted: false }
    }

    /// The matrices of the left stack, counted in row-major order over all axes but the last two.
    pub fn lhs(mut self, indices: &'a Array) -> Self {
        self.lhs = Some(indices);
        self
    }

    /// The matrices of the right stack, such as the experts of each token.
    pub fn rhs(mut self, indices: &'a Array) -> Self {
        self.rhs = Some(indices);
        self
    }

    /// Whether the right matrices are transposed, as they are without this.
    pub fn transpose(mut self, transpose: bool) -> Self {
        self.transpose = transpose;
        self
    }

    /// A promise that the right indices rise, which some devices use. A broken one gives other values.
    pub fn sorted(mut self, sorted: bool) -> Self {
        self.sorted = sorted;
        self
    }

    pub(super) fn is_transposed(self) -> bool {
        self.transpose
    }

    pub(super) fn is_sorted(self) -> bool {
        self.sorted
    }

    /// The indices, forced into the stacks.
    pub(super) fn inside(self, x: &Array, w: &Array, op: &'static str) -> Result<[Option<Array>; 2]> {
        let lhs = self.lhs.map(|indices| matrix_indices(indices, x, op)).transpose()?;
        let rhs = self.rhs.map(|indices| matrix_indices(indices, w, op)).transpose()?;
        Ok([lhs, rhs])
    }
}

/// Products of matrices chosen from a stack and a quantized stack: `x[lhs[i]] @ w[rhs[i]]^T`.
///
/// Shapes: `x` `[.., m, k]`, `w` `[.., n, k]`; the index arrays broadcast; the result `[indices.., m, n]`. Dtypes: `x` floating point,
/// indices integer, **clamped** into the stack. Lazy.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::quantize::{Format, Picks, gather_qmm, quantize};
/// let experts = (Array::from_slice(&[1.0f32, 2.0], (2, 1, 1))? * Array::ones::<f32>((2, 1, 32))?)?;
/// let x = Array::ones::<f32>((2, 1, 32))?;
/// let q = quantize(&experts, Format::Mxfp8)?;
/// let picked = gather_qmm(&x, &q, Picks::all().rhs(&Array::vector(&[1u32, 1])?))?;
/// assert_eq!(picked.to_vec::<f32>()?, [64.0, 64.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] or [`ErrorKind::Dtype`] for parts that do not fit or indices that are no integers;
/// [`ErrorKind::InvalidArgument`] for inner dimensions that differ, or a global scale on the CPU.
///
/// # Source
/// C++ `mlx::core::gather_qmm` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn gather_qmm(x: &Array, q: &Quantized, picks: Picks<'_>) -> Result<Array> {
    const OP: &str = "gather_qmm";
    q.check(OP)?;
    let [lhs, rhs] = picks.inside(x, &q.weight, OP)?;
    let (indices, transpose) = ([lhs.as_ref(), rhs.as_ref()], picks.is_transposed());
    placed(q.format, || {
        cpu::gather_qmm(x, q, indices, transpose)
            .unwrap_or_else(|| mlx_gather_qmm(x, q, indices, transpose, picks.is_sorted()))
    })
}

/// MLX's own node.
pub(crate) fn mlx_gather_qmm(
    x: &Array,
    q: &Quantized,
    [lhs, rhs]: [Option<&Array>; 2],
    transpose: bool,
    sorted: bool,
) -> Result<Array> {
    let Quantized { weight, scales, biases, global_scale, format } = q;
    let ((group, bits), mode) = (format.sizes(), format.mode());
    let [biases, global] = [biases, global_scale].map(|part| part.as_ref().map(|part| &part.0));
    let [lhs, rhs] = [lhs, rhs].map(|indices| indices.map(|indices| &indices.0));
    let (w, scales) = (&weight.0, &scales.0);
    let product = raw::gather_qmm(&x.0, w, scales, biases, lhs, rhs, transpose, group, bits, mode, global, sorted)?;
    counted(x, product.into())
}

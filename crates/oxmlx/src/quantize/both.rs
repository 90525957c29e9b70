//! Products of which both sides are quantized, the left one on the fly. On GPUs that have such units; MLX has none of it on the CPU.

use oxmlx_sys::generated::ops as raw;

use super::{Format, Picks, Quantized};
use crate::{Array, Device, Error, ErrorKind, Result};

/// The right side of a product whose sides are both quantized.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// Quantized beforehand, in the format that the left side gets too.
    Quantized(&'a Quantized),
    /// Quantized on the fly; gradients flow through it.
    Plain {
        /// The weights, floating point.
        weight: &'a Array,
        /// The format that both sides get.
        format: Format,
        /// What the scales of [`Format::Nvfp4`] are divided by.
        global_scale: Option<&'a Array>,
    },
}

/// An operand as MLX's functions take it.
struct Parts<'a> {
    weight: &'a Array,
    scales: Option<&'a Array>,
    global_scale: Option<&'a Array>,
    format: Format,
}

impl<'a> Operand<'a> {
    fn parts(self, op: &'static str) -> Result<Parts<'a>> {
        let parts = match self {
            Self::Quantized(q) => {
                q.check(op)?;
                let (scales, global_scale) = (Some(&q.scales), q.global_scale.as_ref());
                Parts { weight: &q.weight, scales, global_scale, format: q.format }
            }
            Self::Plain { weight, format, global_scale } => Parts { weight, scales: None, global_scale, format },
        };
        if !matches!(parts.format, Format::Mxfp8 | Format::Nvfp4) {
            let text = format!("{:?}: MLX multiplies both sides quantized in mxfp8 and nvfp4", parts.format);
            return Err(Error::new(ErrorKind::Unsupported, op, text));
        }
        // MLX throws this when the node is evaluated, where it would hit what else is on the stream.
        if Device::current()? == Device::Cpu {
            return Err(Error::new(ErrorKind::Unsupported, op, "MLX has no such product on the CPU"));
        }
        Ok(parts)
    }
}

/// `x @ w^T` with both sides quantized, `x` on the fly.
///
/// Shapes: `x` `[.., k]`, `w` `[n, k]`; the result `[.., n]`. Dtypes: `x` float32, float16 or bfloat16. Lazy. On a GPU only.
///
/// ```
/// use oxmlx::quantize::{Format, Operand, qqmm};
/// use oxmlx::{Array, Device, ErrorKind};
/// let x = Array::ones::<f32>((16, 32))?;
/// let product = qqmm(&x, Operand::Plain { weight: &x, format: Format::Mxfp8, global_scale: None }, None);
/// if Device::current()? == Device::Cpu {
///     assert_eq!(product.unwrap_err().kind(), ErrorKind::Unsupported);
/// }
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Unsupported`] on the CPU, and for other formats than mxfp8 and nvfp4; [`ErrorKind::Shape`] or [`ErrorKind::Dtype`] for
/// parts that do not fit; [`ErrorKind::InvalidArgument`] for inner dimensions that differ.
///
/// # Source
/// C++ `mlx::core::qqmm` (`mlx/ops.h`).
pub fn qqmm(x: &Array, w: Operand<'_>, global_scale_x: Option<&Array>) -> Result<Array> {
    let Parts { weight, scales, global_scale, format } = w.parts("qqmm")?;
    let ((group, bits), mode) = (format.sizes(), format.mode());
    let (scales, global_x, global_w) = (scales.map(|s| &s.0), global_scale_x.map(|g| &g.0), global_scale.map(|g| &g.0));
    Ok(raw::qqmm(&x.0, &weight.0, scales, group, bits, mode, global_x, global_w)?.into())
}

/// Products of matrices chosen from two stacks, both sides quantized: [`qqmm`] of `x[lhs[i]]` and `w[rhs[i]]`.
///
/// Shapes: as [`gather_qmm`](super::gather_qmm), `w` always transposed. Indices integer, **clamped** into the stack. Lazy. On a GPU only.
///
/// # Errors
/// As [`qqmm`]; [`ErrorKind::InvalidArgument`] for picks without transposition.
///
/// # Source
/// C++ `mlx::core::gather_qqmm` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn gather_qqmm(x: &Array, w: Operand<'_>, picks: Picks<'_>, global_scale_x: Option<&Array>) -> Result<Array> {
    const OP: &str = "gather_qqmm";
    if !picks.is_transposed() {
        return Err(Error::new(ErrorKind::InvalidArgument, OP, "the right matrices are always transposed"));
    }
    let Parts { weight, scales, global_scale, format } = w.parts(OP)?;
    let [lhs, rhs] = picks.inside(x, weight, OP)?;
    let (lhs, rhs) = (lhs.as_ref().map(|i| &i.0), rhs.as_ref().map(|i| &i.0));
    let ((group, bits), mode) = (format.sizes(), format.mode());
    let (scales, global_x, global_w) = (scales.map(|s| &s.0), global_scale_x.map(|g| &g.0), global_scale.map(|g| &g.0));
    let (x, w, sorted) = (&x.0, &weight.0, picks.is_sorted());
    Ok(raw::gather_qqmm(x, w, scales, lhs, rhs, group, bits, mode, global_x, global_w, sorted)?.into())
}

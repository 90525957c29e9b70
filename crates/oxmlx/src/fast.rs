//! MLX's fused operations: normalisation, rotary embedding, attention, losses, and GPU kernels from source.

mod attention;
mod delta;
mod loss;
mod norm;

use oxmlx_sys::generated::fast as raw;

pub(crate) use self::attention::mlx_attention;
pub use self::attention::{Attention, attention};
pub use self::delta::{GatedDelta, gated_delta_update};
pub use self::loss::cross_entropy;
pub use self::norm::layer_norm;
pub(crate) use self::norm::mlx_layer_norm;
use crate::{Array, Error, ErrorKind, Result, cpu, ops};

/// `x` divided by the root of the mean square of its last axis, times `weight`.
///
/// Shapes: `x` `[.., d]`, `weight` `[d]`; the result has that of `x`. Dtypes: floating point; the result has the promoted one of `x`
/// and `weight`, the mean is taken in float32. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let x = Array::from_slice(&[3.0f32, 4.0], (1, 2))?;
/// let y = fast::rms_norm(&x, None, 0.0)?.to_vec::<f32>()?;
/// assert!((y[0] - 3.0 / 12.5f32.sqrt()).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a scalar or a weight of another length.
///
/// # Source
/// C++ `mlx::core::fast::rms_norm` (`mlx/fast.h`); Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
pub fn rms_norm(x: &Array, weight: Option<&Array>, eps: f32) -> Result<Array> {
    cpu::rms_norm(x, weight, eps).unwrap_or_else(|| mlx_rms_norm(x, weight, eps))
}

/// MLX's own node.
pub(crate) fn mlx_rms_norm(x: &Array, weight: Option<&Array>, eps: f32) -> Result<Array> {
    Ok(raw::rms_norm(&x.0, weight.map(|w| &w.0), eps)?.into())
}

/// How a rotary embedding turns its pairs.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rope<'a> {
    dims: i32,
    traditional: bool,
    base: Option<f32>,
    scale: f32,
    freqs: Option<&'a Array>,
}

impl<'a> Rope<'a> {
    /// A rotation of the first `dims` entries of the last axis, with angles `position * base^(-2i/dims)`.
    pub fn new(dims: i32, base: f32) -> Self {
        Self { dims, traditional: false, base: Some(base), scale: 1.0, freqs: None }
    }

    /// A rotation with angles `position / freqs[i]`: MLX takes the reciprocals of the frequencies, `[dims / 2]` float32.
    pub fn with_freqs(dims: i32, freqs: &'a Array) -> Self {
        Self { dims, traditional: false, base: None, scale: 1.0, freqs: Some(freqs) }
    }

    /// Whether neighbours make a pair (`x[2i]`, `x[2i + 1]`), as in the paper; else the halves do (`x[i]`, `x[i + dims / 2]`).
    pub fn traditional(mut self, traditional: bool) -> Self {
        self.traditional = traditional;
        self
    }

    /// A factor on every position.
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }
}

/// What a [`Rope`] says besides its array.
#[derive(Clone, Copy)]
pub(crate) struct RopeSettings {
    pub(crate) dims: i32,
    pub(crate) traditional: bool,
    pub(crate) base: Option<f32>,
    pub(crate) scale: f32,
}

impl<'a> Rope<'a> {
    pub(crate) fn from_settings(settings: RopeSettings, freqs: Option<&'a Array>) -> Self {
        let RopeSettings { dims, traditional, base, scale } = settings;
        Self { dims, traditional, base, scale, freqs }
    }

    fn check(&self, x: &Array) -> Result<()> {
        let last = x.dim(-1).unwrap_or(0);
        if self.dims < 2 || self.dims % 2 != 0 || self.dims > last {
            let text = format!("dims {} must be even and from 2 to the last axis of shape {:?}", self.dims, x.shape());
            return Err(Error::new(ErrorKind::InvalidArgument, "rope", text).with_shape(x.shape()));
        }
        Ok(())
    }

    pub(crate) fn settings(&self) -> RopeSettings {
        let &Self { dims, traditional, base, scale, .. } = self;
        RopeSettings { dims, traditional, base, scale }
    }

    pub(crate) fn freqs(&self) -> Option<&'a Array> {
        self.freqs
    }
}

/// Rotates pairs of `x` by their position: `offset` for the first row of the second-last axis, then one more a row.
///
/// Shapes: `[.., t, d]` to the same. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let x = Array::from_slice(&[1.0f32, 0.0], (1, 1, 2))?;
/// let y = fast::rope(&x, &fast::Rope::new(2, 10_000.0), 1)?.to_vec::<f32>()?;
/// assert!((y[0] - 1f32.cos()).abs() < 1e-6 && (y[1] - 1f32.sin()).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for fewer than three dimensions, or `dims` that is odd, not positive or over the last axis.
///
/// # Source
/// C++ `mlx::core::fast::rope` (`mlx/fast.h`); Su et al., RoFormer, 2021.
pub fn rope(x: &Array, rope: &Rope<'_>, offset: i32) -> Result<Array> {
    rope.check(x)?;
    cpu::rope(x, rope, offset).unwrap_or_else(|| mlx_rope(x, rope.settings(), rope.freqs, offset))
}

/// [`rope`] with offsets in an array: one for all, or one for each entry of the first axis. They need no evaluation.
///
/// Shapes: `x` `[b, .., t, d]`, offsets `[]`, `[1]` or `[b]`; the result has that of `x`. Dtypes: `x` floating point, offsets integer. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let x = Array::from_slice(&[1.0f32, 0.0, 1.0, 0.0], (2, 1, 1, 2))?;
/// let y = fast::rope_offsets(&x, &fast::Rope::new(2, 10_000.0), &Array::vector(&[0i32, 1])?)?.to_vec::<f32>()?;
/// assert!(y[..2] == [1.0, 0.0] && (y[2] - 1f32.cos()).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`rope`]; [`ErrorKind::Dtype`] for offsets that are no integers, [`ErrorKind::Shape`] for offsets of another shape.
///
/// # Source
/// C++ `mlx::core::fast::rope` (`mlx/fast.h`).
pub fn rope_offsets(x: &Array, rope: &Rope<'_>, offsets: &Array) -> Result<Array> {
    rope.check(x)?;
    ops::check::integer(offsets, "rope")?;
    let batch = x.dim(0).unwrap_or(1);
    if !(offsets.size() == 1 || offsets.shape() == [batch]) || offsets.ndim() > 1 {
        let text = format!("offsets of shape {:?} for x of shape {:?}", offsets.shape(), x.shape());
        return Err(Error::new(ErrorKind::Shape, "rope", text).with_shape(x.shape()).with_shape(offsets.shape()));
    }
    // MLX's GPU kernels step through an array of one offset as through one a batch entry, and read past it.
    let one = (offsets.ndim() == 1 && offsets.size() == 1).then(|| ops::reshape(offsets, ())).transpose()?;
    let offsets = one.as_ref().unwrap_or(offsets);
    let RopeSettings { dims, traditional, base, scale } = rope.settings();
    Ok(raw::rope_offsets(&x.0, dims, traditional, base, scale, &offsets.0, rope.freqs.map(|f| &f.0))?.into())
}

/// MLX's own node.
pub(crate) fn mlx_rope(x: &Array, settings: RopeSettings, freqs: Option<&Array>, offset: i32) -> Result<Array> {
    let RopeSettings { dims, traditional, base, scale } = settings;
    Ok(raw::rope(&x.0, dims, traditional, base, scale, offset, freqs.map(|f| &f.0))?.into())
}

/// Which keys a query may see.
#[derive(Clone, Copy, Debug, Default)]
pub enum Mask<'a> {
    /// All of them.
    #[default]
    None,
    /// Those up to its own position; with fewer queries than keys, the last query stands at the last key.
    Causal,
    /// What this array says, broadcast to `[batch, heads, queries, keys]`: true in a bool mask; a floating point mask is added to the
    /// scores. A query that sees nothing gives the mean of the values for a bool mask and NaN for one of minus infinities.
    Array(&'a Array),
}

/// `softmax(queries @ keys^T * scale) @ values` without the matrix of scores.
///
/// Shapes: queries `[b, h, q, d]`, keys and values `[b, h_kv, k, d]` with `h` a multiple of `h_kv`; the result `[b, h, q, d]`.
/// Dtypes: floating point; softmax in float32. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let x = Array::ones::<f32>((1, 1, 2, 4))?;
/// let y = fast::scaled_dot_product_attention(&x, &x, &x, 0.5, fast::Mask::Causal)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0; 8]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for shapes that do not fit, or a mask that does not broadcast.
///
/// # Source
/// C++ `mlx::core::fast::scaled_dot_product_attention` (`mlx/fast.h`).
pub fn scaled_dot_product_attention(
    queries: &Array,
    keys: &Array,
    values: &Array,
    scale: f32,
    mask: Mask<'_>,
) -> Result<Array> {
    attention(queries, keys, values, Attention::new(scale).mask(mask))
}

/// `silu(gate) * up`, the gated activation of Llama-like models, where `silu(x) = x * sigmoid(x)`.
///
/// Shapes: `gate` and `up` broadcast against each other. Dtypes: floating point; promoted. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let (gate, up) = (Array::scalar(0.0f32)?, Array::scalar(3.0f32)?);
/// assert_eq!(fast::swiglu(&gate, &up)?.item::<f32>()?, 0.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the shapes do not broadcast.
///
/// # Source
/// Shazeer, GLU Variants Improve Transformer, 2020; MLX has no such function: `x * sigmoid(x) * up` in its operations.
pub fn swiglu(gate: &Array, up: &Array) -> Result<Array> {
    cpu::swiglu(gate, up).unwrap_or_else(|| mlx_swiglu(gate, up))
}

/// MLX's own nodes.
pub(crate) fn mlx_swiglu(gate: &Array, up: &Array) -> Result<Array> {
    let silu = (gate * ops::sigmoid(gate)?)?;
    &silu * up
}

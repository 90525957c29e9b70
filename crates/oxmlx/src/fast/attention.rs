//! Attention with all of MLX's options.

use oxmlx_sys::generated::fast as raw;
use oxmlx_sys::types::MaskMode;

use super::Mask;
use crate::{Array, Result, cpu};

/// How queries attend to keys.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Attention<'a> {
    pub(crate) scale: f32,
    pub(crate) mask: Mask<'a>,
    pub(crate) sinks: Option<&'a Array>,
    force_fused: bool,
}

impl<'a> Attention<'a> {
    /// Attention of all queries to all keys, the scores multiplied by `scale`: usually `1 / sqrt(d)`.
    pub fn new(scale: f32) -> Self {
        Self { scale, mask: Mask::None, sinks: None, force_fused: false }
    }

    /// Which keys a query may see.
    pub fn mask(mut self, mask: Mask<'a>) -> Self {
        self.mask = mask;
        self
    }

    /// Scores of one more key a head, `[h]`, whose value is zero: what a query does not want to attend to goes there.
    pub fn sinks(mut self, sinks: &'a Array) -> Self {
        self.sinks = Some(sinks);
        self
    }

    /// Whether an error is wanted in place of the unfused path where there is no fused kernel for the call. There is none on the CPU.
    pub fn force_fused(mut self, force: bool) -> Self {
        self.force_fused = force;
        self
    }
}

/// [`scaled_dot_product_attention`](super::scaled_dot_product_attention) with sinks and the choice of path.
///
/// Shapes, dtypes: as there; sinks `[h]` with a dtype that promotes to the queries'. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let x = Array::ones::<f32>((1, 1, 1, 4))?;
/// // One key and one sink of the same score share the weight.
/// let sinks = Array::vector(&[2.0f32])?;
/// let y = fast::attention(&x, &x, &x, fast::Attention::new(0.5).sinks(&sinks))?;
/// assert_eq!(y.to_vec::<f32>()?, [0.5; 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for shapes that do not fit, a mask that does not broadcast, or where
/// no fused kernel is to be had and one was asked for.
///
/// # Source
/// C++ `mlx::core::fast::scaled_dot_product_attention` (`mlx/fast.h`); sinks: Xiao et al., Efficient Streaming Language Models with
/// Attention Sinks, 2023.
pub fn attention(queries: &Array, keys: &Array, values: &Array, attention: Attention<'_>) -> Result<Array> {
    let ours = if attention.force_fused { None } else { cpu::attention(queries, keys, values, attention) };
    ours.unwrap_or_else(|| mlx_attention(queries, keys, values, attention))
}

/// MLX's own node.
pub(crate) fn mlx_attention(queries: &Array, keys: &Array, values: &Array, how: Attention<'_>) -> Result<Array> {
    let (mode, array) = match how.mask {
        Mask::None => (MaskMode::None, None),
        Mask::Causal => (MaskMode::Causal, None),
        Mask::Array(array) => (MaskMode::Array, Some(&array.0)),
    };
    let (q, k, v, sinks) = (&queries.0, &keys.0, &values.0, how.sinks.map(|s| &s.0));
    Ok(raw::scaled_dot_product_attention(q, k, v, how.scale, mode, array, sinks, how.force_fused)?.into())
}

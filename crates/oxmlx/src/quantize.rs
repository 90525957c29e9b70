//! Weights in few bits: packed groups with a scale and a bias.
//!
//! In the affine mode a group of `group_size` neighbours along the last axis shares a scale and a bias: `w = scale * q + bias`. The
//! quantized values lie packed in uint32 words, low bits first.

use oxmlx_sys::generated::ops as raw;
use oxmlx_sys::types::QuantMode;

use crate::{Array, Error, ErrorKind, Result, cpu};

/// The shape of the groups of an affine quantization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    group_size: i32,
    bits: i32,
}

impl Affine {
    /// Groups of `group_size` (32, 64 or 128) values of `bits` (2, 3, 4, 5, 6 or 8) bits.
    ///
    /// # Errors
    /// [`ErrorKind::Group`] for any other size or width.
    pub fn new(group_size: i32, bits: i32) -> Result<Self> {
        if !matches!(group_size, 32 | 64 | 128) {
            let text = format!("group size {group_size}: MLX has 32, 64 and 128");
            return Err(Error::new(ErrorKind::Group, "quantize", text));
        }
        if !matches!(bits, 2 | 3 | 4 | 5 | 6 | 8) {
            return Err(Error::new(ErrorKind::Group, "quantize", format!("{bits} bits: MLX has 2, 3, 4, 5, 6 and 8")));
        }
        Ok(Self { group_size, bits })
    }

    /// The number of values that share a scale.
    pub fn group_size(self) -> i32 {
        self.group_size
    }

    /// The bits of one value.
    pub fn bits(self) -> i32 {
        self.bits
    }
}

/// A matrix in an affine quantization.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// The packed values: `[.., n * bits / 32]` uint32.
    pub weight: Array,
    /// One a group: `[.., n / group_size]`.
    pub scales: Array,
    /// One a group: `[.., n / group_size]`.
    pub biases: Array,
    /// The shape of the groups.
    pub affine: Affine,
}

/// Quantizes `w` along its last axis, whose length is a multiple of the group size. Lazy.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for fewer than two dimensions or a length that the groups do not divide.
///
/// # Source
/// C++ `mlx::core::quantize` (`mlx/ops.h`).
pub fn quantize(w: &Array, affine: Affine) -> Result<Quantized> {
    let parts = raw::quantize(&w.0, Some(affine.group_size), Some(affine.bits), QuantMode::Affine, None)?;
    match <[_; 3]>::try_from(parts) {
        Ok([weight, scales, biases]) => {
            Ok(Quantized { weight: weight.into(), scales: scales.into(), biases: biases.into(), affine })
        }
        Err(parts) => {
            let text = format!("MLX gave {} arrays for an affine quantization, not 3", parts.len());
            Err(Error::new(ErrorKind::Backend, "quantize", text))
        }
    }
}

/// The values of a quantized matrix. Lazy.
///
/// ```
/// use oxmlx::quantize::{Affine, dequantize, quantize};
/// let w = oxmlx::Array::zeros::<f32>((2, 32))?;
/// let q = quantize(&w, Affine::new(32, 4)?)?;
/// assert_eq!(dequantize(&q)?.to_vec::<f32>()?, [0.0; 64]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for parts whose shapes do not fit.
///
/// # Source
/// C++ `mlx::core::dequantize` (`mlx/ops.h`).
pub fn dequantize(q: &Quantized) -> Result<Array> {
    let Quantized { weight, scales, biases, affine } = q;
    let (group, bits) = (Some(affine.group_size), Some(affine.bits));
    Ok(raw::dequantize(&weight.0, &scales.0, Some(&biases.0), group, bits, QuantMode::Affine, None, None)?.into())
}

/// `x @ w^T` with a quantized `w`.
///
/// Shapes: `x` `[.., k]` and `w` `[n, k]` give `[.., n]`. Dtypes: `x` floating point. Lazy.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the inner dimensions differ.
///
/// # Source
/// C++ `mlx::core::quantized_matmul` (`mlx/ops.h`), with `transpose`.
pub fn quantized_matmul(x: &Array, q: &Quantized) -> Result<Array> {
    cpu::quantized_matmul(x, q).unwrap_or_else(|| mlx_quantized_matmul(x, q))
}

/// MLX's own node.
pub(crate) fn mlx_quantized_matmul(x: &Array, q: &Quantized) -> Result<Array> {
    let Quantized { weight, scales, biases, affine } = q;
    let (group, bits) = (Some(affine.group_size), Some(affine.bits));
    let biases = Some(&biases.0);
    Ok(raw::quantized_matmul(&x.0, &weight.0, &scales.0, biases, true, group, bits, QuantMode::Affine)?.into())
}

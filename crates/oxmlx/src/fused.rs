//! Blocks of a decoder layer as one node each.
//!
//! One token's pass through a layer is a few dozen small operations, and on the CPU the graph around them costs as much as the
//! arithmetic. Each function here is one node on the CPU, over our own kernels, and MLX's operations elsewhere: the same values
//! either way, but for rounding between the steps, which the one node does not have.

mod attention_rows;
mod cached_attention;
mod decoder;
mod gated_mlp;
mod matmul_add;
mod norm_matmuls;

pub(crate) use attention_rows::mlx_attention_rows;
pub use attention_rows::{AttendedRows, attention_rows};
pub use cached_attention::{Attended, CachedAttention, KvBuffers, cached_attention};
pub(crate) use cached_attention::{AttentionSettings, mlx_cached_attention};
pub use decoder::{Decoded, Decoder, DecoderLayer};
pub(crate) use decoder::{OwnedLayer, layer_by_layer};
pub use gated_mlp::gated_mlp;
pub(crate) use gated_mlp::mlx_gated_mlp;
pub use matmul_add::matmul_add;
pub(crate) use matmul_add::mlx_matmul_add;
pub(crate) use norm_matmuls::mlx_norm_matmuls;
pub use norm_matmuls::norm_matmuls;

use crate::quantize::{Quantized, quantized_matmul};
use crate::{Array, Dtype, Result, fast};

/// A stored matrix `[n, k]` that inputs are multiplied with: `x @ matrix^T`.
#[derive(Clone, Copy, Debug)]
pub enum Matrix<'a> {
    /// Floating point values.
    Plain(&'a Array),
    /// Packed groups with scales and biases.
    Affine(&'a Quantized),
}

impl Matrix<'_> {
    /// `x @ matrix^T`: `[.., k]` to `[.., n]`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the inner dimensions differ.
    pub fn apply(&self, x: &Array) -> Result<Array> {
        match self {
            Self::Plain(weight) => x.matmul(&weight.transpose()?),
            Self::Affine(quantized) => quantized_matmul(x, quantized),
        }
    }

    /// The number of rows, `n`.
    pub(crate) fn rows(&self) -> Option<i32> {
        match self {
            Self::Plain(weight) => weight.dim(0),
            Self::Affine(quantized) => quantized.weight.dim(0),
        }
    }

    /// The dtype that its values have.
    pub(crate) fn dtype(&self) -> Dtype {
        match self {
            Self::Plain(weight) => weight.dtype(),
            Self::Affine(quantized) => quantized.scales.dtype(),
        }
    }
}

/// A matrix that holds its arrays.
#[derive(Clone, Debug)]
pub(crate) enum OwnedMatrix {
    Plain(Array),
    Affine(Quantized),
}

impl OwnedMatrix {
    pub(crate) fn new(matrix: Matrix<'_>) -> Self {
        match matrix {
            Matrix::Plain(weight) => Self::Plain(weight.clone()),
            Matrix::Affine(quantized) => Self::Affine(quantized.clone()),
        }
    }

    pub(crate) fn matrix(&self) -> Matrix<'_> {
        match self {
            Self::Plain(weight) => Matrix::Plain(weight),
            Self::Affine(quantized) => Matrix::Affine(quantized),
        }
    }
}

/// Root mean square normalisation as a part of a block.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a> {
    /// One factor an entry of the last axis.
    pub weight: &'a Array,
    /// Added to the mean square.
    pub eps: f32,
}

impl Norm<'_> {
    fn apply(&self, x: &Array) -> Result<Array> {
        fast::rms_norm(x, Some(self.weight), self.eps)
    }
}

//! Matrix multiplication with a stored weight.

use oxmlx::fused::Matrix;
use oxmlx::quantize::{Quantized, dequantize};
use oxmlx::{Array, ops};

use crate::Result;

/// A stored matrix `[rows, columns]`, in floating point or quantized.
#[derive(Clone, Debug)]
pub enum Weight {
    /// Floating point values.
    Plain(Array),
    /// Packed groups with scales and biases.
    Affine(Quantized),
}

impl Weight {
    /// As a part of a fused block.
    pub fn matrix(&self) -> Matrix<'_> {
        match self {
            Self::Plain(weight) => Matrix::Plain(weight),
            Self::Affine(quantized) => Matrix::Affine(quantized),
        }
    }

    /// `x @ weight^T`: `[.., columns]` to `[.., rows]`.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when the inner dimensions differ.
    pub fn apply(&self, x: &Array) -> Result<Array> {
        Ok(self.matrix().apply(x)?)
    }

    /// The rows at `indices`, in floating point: `[..]` to `[.., columns]`.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) for indices that are no integers.
    pub fn rows(&self, indices: &Array) -> Result<Array> {
        Ok(match self {
            Self::Plain(weight) => ops::take(weight, indices, 0)?,
            Self::Affine(quantized) => dequantize(&quantized.take(indices)?)?,
        })
    }
}

/// `x @ weight^T + bias`.
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Weight,
    bias: Option<Array>,
}

impl Linear {
    /// A layer of these parts; the bias has one value a row of the weight.
    pub fn new(weight: Weight, bias: Option<Array>) -> Self {
        Self { weight, bias }
    }

    /// The weight as a part of a fused block; `None` when there is a bias, which the blocks do not have.
    pub fn matrix(&self) -> Option<Matrix<'_>> {
        match self.bias {
            Some(_) => None,
            None => Some(self.weight.matrix()),
        }
    }

    /// `[.., columns]` to `[.., rows]`.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when the inner dimensions differ.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let y = self.weight.apply(x)?;
        match &self.bias {
            Some(bias) => Ok((&y + bias)?),
            None => Ok(y),
        }
    }
}

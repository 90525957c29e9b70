//! The operations that read well as methods.

use super as ops;
use crate::shape::IntoShape;
use crate::{Array, Dtype, Result};

impl Array {
    /// See [`ops::astype`].
    ///
    /// # Errors
    /// As [`ops::astype`].
    pub fn astype(&self, dtype: Dtype) -> Result<Self> {
        ops::astype(self, dtype)
    }

    /// See [`ops::reshape`].
    ///
    /// # Errors
    /// As [`ops::reshape`].
    pub fn reshape<'s>(&self, shape: impl IntoShape<'s>) -> Result<Self> {
        ops::reshape(self, shape)
    }

    /// The dimensions in reverse order. See [`ops::transpose`] for any order.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn transpose(&self) -> Result<Self> {
        let axes: Vec<i32> = (0..self.ndim() as i32).rev().collect();
        ops::transpose(self, &axes)
    }

    /// See [`ops::transpose`].
    ///
    /// # Errors
    /// As [`ops::transpose`].
    pub fn transpose_axes(&self, axes: &[i32]) -> Result<Self> {
        ops::transpose(self, axes)
    }

    /// See [`ops::matmul`].
    ///
    /// # Errors
    /// As [`ops::matmul`].
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        ops::matmul(self, other)
    }
}

//! Normalisation.

use oxmlx::fused::Norm;
use oxmlx::{Array, fast};

use crate::Result;

/// Root mean square normalisation over the last axis.
#[derive(Clone, Debug)]
pub struct RmsNorm {
    weight: Array,
    eps: f32,
}

impl RmsNorm {
    /// A norm with one factor an entry; `eps` is added to the mean square.
    pub fn new(weight: Array, eps: f32) -> Self {
        Self { weight, eps }
    }

    /// As a part of a fused block.
    pub fn norm(&self) -> Norm<'_> {
        Norm { weight: &self.weight, eps: self.eps }
    }

    /// `[.., width]` to the same.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when the widths differ.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        Ok(fast::rms_norm(x, Some(&self.weight), self.eps)?)
    }
}

//! Activation functions.

use oxmlx::{Array, ops};

use crate::Result;

/// `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))`, in the dtype of `x`.
///
/// # Errors
/// Only what every entry into MLX can report.
pub fn gelu_tanh(x: &Array) -> Result<Array> {
    const ROOT: f32 = 0.797_884_6;
    let cube = ((x * x)? * x)?;
    let inner = (x + (cube * 0.044_715f32)?)?;
    let tanh = ops::tanh(&(inner * ROOT)?)?;
    Ok(((x * 0.5f32)? * (tanh + 1.0f32)?)?)
}

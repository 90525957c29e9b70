//! Normalisation with a mean.

use oxmlx_sys::generated::fast as raw;

use crate::{Array, Error, ErrorKind, Result, cpu};

/// `x` less the mean of its last axis, divided by the standard deviation, times `weight`, plus `bias`.
///
/// Shapes: `x` `[.., d]`, `weight` and `bias` `[d]`; the result has that of `x`. Dtypes: floating point, promoted; mean and variance are
/// taken in float32. Lazy. `eps` is added to the variance.
///
/// ```
/// use oxmlx::{Array, fast};
/// let x = Array::matrix(&[[0.0f32, 2.0, 4.0]])?;
/// let y = fast::layer_norm(&x, None, Some(&Array::ones::<f32>(3)?), 0.0)?.to_vec::<f32>()?;
/// assert!((y[2] - (1.0 + 1.5f32.sqrt())).abs() < 1e-6 && y[1] == 1.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a scalar, or a weight or bias of another shape.
///
/// # Source
/// C++ `mlx::core::fast::layer_norm` (`mlx/fast.h`); Ba, Kiros and Hinton, Layer Normalization, 2016.
pub fn layer_norm(x: &Array, weight: Option<&Array>, bias: Option<&Array>, eps: f32) -> Result<Array> {
    let Some(last) = x.dim(-1) else {
        return Err(Error::new(ErrorKind::Shape, "layer_norm", "a scalar has no axis to normalise").with_shape(&[]));
    };
    for (part, name) in [(weight, "weight"), (bias, "bias")] {
        if let Some(part) = part.filter(|part| part.shape() != [last]) {
            let text = format!("the {name} has shape {:?}, the last axis of x is {last} long", part.shape());
            return Err(Error::new(ErrorKind::Shape, "layer_norm", text)
                .with_shape(x.shape())
                .with_shape(part.shape()));
        }
    }
    cpu::layer_norm(x, weight, bias, eps).unwrap_or_else(|| mlx_layer_norm(x, weight, bias, eps))
}

/// MLX's own node.
pub(crate) fn mlx_layer_norm(x: &Array, weight: Option<&Array>, bias: Option<&Array>, eps: f32) -> Result<Array> {
    Ok(raw::layer_norm(&x.0, weight.map(|w| &w.0), bias.map(|b| &b.0), eps)?.into())
}

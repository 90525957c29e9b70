//! Random numbers from explicit keys: the same key gives the same values, on every thread and every device.

use oxmlx_sys::generated::random as raw;

use crate::shape::IntoShape;
use crate::{Array, Dtype, Result};

/// A key from a seed. Shape `[2]`, uint32.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::random::key` (`mlx/random.h`).
pub fn key(seed: u64) -> Result<Array> {
    Ok(raw::key(seed)?.into())
}

/// Uniform values of `[0, 1)`. Lazy.
///
/// ```
/// use oxmlx::{Dtype, random};
/// let key = random::key(7)?;
/// let (a, b) = (random::uniform(4, Dtype::Float32, &key)?, random::uniform(4, Dtype::Float32, &key)?);
/// assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a dtype that is no floating point type or a wrong key.
///
/// # Source
/// C++ `mlx::core::random::uniform` (`mlx/random.h`).
pub fn uniform<'s>(shape: impl IntoShape<'s>, dtype: Dtype, key: &Array) -> Result<Array> {
    Ok(raw::uniform_unit(&shape.into_shape(), dtype, Some(&key.0))?.into())
}

/// Values of the standard normal distribution. Lazy.
///
/// # Errors
/// As [`uniform`].
///
/// # Source
/// C++ `mlx::core::random::normal` (`mlx/random.h`).
pub fn normal<'s>(shape: impl IntoShape<'s>, dtype: Dtype, key: &Array) -> Result<Array> {
    Ok(raw::normal(&shape.into_shape(), dtype, None, None, Some(&key.0))?.into())
}

//! Changes of shape: no value is computed.

use oxmlx_sys::generated::ops as raw;

use super::index::axis_length;
use crate::shape::IntoShape;
use crate::{Array, Error, ErrorKind, Result};

/// The same elements in another shape; one dimension may be -1 and is computed. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>(6)?;
/// assert_eq!(ops::reshape(&a, (2, -1))?.shape(), [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the number of elements differs.
///
/// # Source
/// C++ `mlx::core::reshape` (`mlx/ops.h`).
pub fn reshape<'s>(a: &Array, shape: impl IntoShape<'s>) -> Result<Array> {
    Ok(raw::reshape(&a.0, &shape.into_shape())?.into())
}

/// The dimensions in another order: `axes[i]` becomes dimension `i`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::transpose(&a, &[2, 0, 1])?.shape(), [4, 2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when `axes` is no permutation of the dimensions.
///
/// # Source
/// C++ `mlx::core::transpose` (`mlx/ops.h`).
pub fn transpose(a: &Array, axes: &[i32]) -> Result<Array> {
    Ok(raw::transpose_axes(&a.0, axes)?.into())
}

/// A view with a new dimension of length 1 at `axis`. Lazy.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for an axis outside the dimensions of the result.
///
/// # Source
/// C++ `mlx::core::expand_dims` (`mlx/ops.h`).
pub fn expand_dims(a: &Array, axis: i32) -> Result<Array> {
    Ok(raw::expand_dims_axis(&a.0, axis)?.into())
}

/// A view without the dimension of length 1 at `axis`. Lazy.
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions, [`ErrorKind::InvalidArgument`] for one that is longer than 1.
///
/// # Source
/// C++ `mlx::core::squeeze` (`mlx/ops.h`).
pub fn squeeze(a: &Array, axis: i32) -> Result<Array> {
    axis_length(a, axis, "squeeze")?;
    Ok(raw::squeeze_axis(&a.0, axis)?.into())
}

/// The arrays one after another along `axis`. Dtypes: promoted to a common one. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::scalar(1i32)?.reshape(1)?, Array::from_slice(&[2i32, 3], 2)?);
/// assert_eq!(ops::concatenate(&[a, b], 0)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for no arrays, or shapes that differ outside `axis`.
///
/// # Source
/// C++ `mlx::core::concatenate` (`mlx/ops.h`).
pub fn concatenate(arrays: &[Array], axis: i32) -> Result<Array> {
    if arrays.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "concatenate", "there is no array to concatenate"));
    }
    Ok(raw::concatenate(Array::raw(arrays), axis)?.into())
}

/// A view that repeats dimensions of length 1 up to `shape`. Lazy.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the array does not broadcast to the shape.
///
/// # Source
/// C++ `mlx::core::broadcast_to` (`mlx/ops.h`).
pub fn broadcast_to<'s>(a: &Array, shape: impl IntoShape<'s>) -> Result<Array> {
    Ok(raw::broadcast_to(&a.0, &shape.into_shape())?.into())
}

//! Changes of shape: no value is computed.

use oxmlx_sys::generated::ops as raw;

use super::check;
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
/// [`ErrorKind::InvalidArgument`] when the number of elements differs; [`ErrorKind::Shape`] for more than one -1, other negative
/// numbers or a product that can't be counted.
///
/// # Source
/// C++ `mlx::core::reshape` (`mlx/ops.h`).
pub fn reshape<'s>(a: &Array, shape: impl IntoShape<'s>) -> Result<Array> {
    let shape = shape.into_shape();
    one_open(&shape, "reshape")?;
    Ok(raw::reshape(&a.0, &shape)?.into())
}

/// A shape with at most one -1, whose other dimensions can be counted.
fn one_open(shape: &[i32], op: &'static str) -> Result<()> {
    let Some(open) = shape.iter().position(|&n| n == -1) else { return check::possible(shape, op) };
    let mut rest = shape.to_vec();
    rest.remove(open);
    if crate::shape::element_count(&rest).is_none() {
        let text = format!("shape {shape:?}: at most one dimension may be -1, and none below");
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(shape));
    }
    Ok(())
}

/// One dimension, the product of `start..=end`, in place of those. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::flatten(&a, 1, -1)?.shape(), [2, 12]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] when `start` lies behind `end`;
/// [`ErrorKind::Shape`] when the product is over `i32::MAX`.
///
/// # Source
/// C++ `mlx::core::flatten` (`mlx/ops.h`); differs: a product too large is undefined there.
pub fn flatten(a: &Array, start: i32, end: i32) -> Result<Array> {
    if a.ndim() > 0 {
        let (from, to) = (check::axis_from_front(a, start, "flatten")?, check::axis_from_front(a, end, "flatten")?);
        if from <= to {
            // 128 bits hold four dimensions of 32; saturate for more.
            let product = a.shape()[from..=to].iter().fold(1i64, |n, &dim| n.saturating_mul(i64::from(dim)));
            check::length(product, "the flattened dimension", "flatten")?;
        }
    }
    Ok(raw::flatten(&a.0, start, end)?.into())
}

/// The dimension `axis` taken apart into `shape`, of which one may be -1. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 12))?;
/// assert_eq!(ops::unflatten(&a, 1, (3, -1))?.shape(), [2, 3, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] when the product differs.
///
/// # Source
/// C++ `mlx::core::unflatten` (`mlx/ops.h`).
pub fn unflatten<'s>(a: &Array, axis: i32, shape: impl IntoShape<'s>) -> Result<Array> {
    check::axis_length(a, axis, "unflatten")?;
    let shape = shape.into_shape();
    one_open(&shape, "unflatten")?;
    if shape.contains(&-1) && shape.iter().filter(|&&n| n != -1).any(|&n| n == 0) {
        let text = format!("shape {shape:?}: -1 can't be computed beside 0");
        return Err(Error::new(ErrorKind::Shape, "unflatten", text).with_shape(&shape));
    }
    Ok(raw::unflatten(&a.0, axis, &shape)?.into())
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
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice; [`ErrorKind::InvalidArgument`] when one is missing.
///
/// # Source
/// C++ `mlx::core::transpose` (`mlx/ops.h`).
pub fn transpose(a: &Array, axes: &[i32]) -> Result<Array> {
    check::axes(a, axes, "transpose")?;
    Ok(raw::transpose_axes(&a.0, axes)?.into())
}

/// The dimensions in reverse order. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::transpose_all(&a)?.shape(), [4, 3, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::transpose` (`mlx/ops.h`).
pub fn transpose_all(a: &Array) -> Result<Array> {
    Ok(raw::transpose_all(&a.0)?.into())
}

/// The last two dimensions exchanged. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::matrix_transpose(&a)?.shape(), [2, 4, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for fewer than two dimensions.
///
/// # Source
/// C++ `mlx::core::matrix_transpose` (`mlx/ops.h`).
pub fn matrix_transpose(a: &Array) -> Result<Array> {
    check::axis_length(a, -2, "matrix_transpose")?;
    Ok(raw::matrix_transpose(&a.0)?.into())
}

/// Two dimensions exchanged. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::swapaxes(&a, 0, -1)?.shape(), [4, 3, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::swapaxes` (`mlx/ops.h`).
pub fn swapaxes(a: &Array, axis1: i32, axis2: i32) -> Result<Array> {
    check::axis_length(a, axis1, "swapaxes")?;
    check::axis_length(a, axis2, "swapaxes")?;
    Ok(raw::swapaxes(&a.0, axis1, axis2)?.into())
}

/// One dimension moved to another place, the others in their order. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::moveaxis(&a, 0, -1)?.shape(), [3, 4, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::moveaxis` (`mlx/ops.h`).
pub fn moveaxis(a: &Array, source: i32, destination: i32) -> Result<Array> {
    check::axis_length(a, source, "moveaxis")?;
    check::axis_length(a, destination, "moveaxis")?;
    Ok(raw::moveaxis(&a.0, source, destination)?.into())
}

/// A view with a new dimension of length 1 at `axis`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::expand_dims(&Array::zeros::<f32>(3)?, -1)?.shape(), [3, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions of the result.
///
/// # Source
/// C++ `mlx::core::expand_dims` (`mlx/ops.h`).
pub fn expand_dims(a: &Array, axis: i32) -> Result<Array> {
    check::new_axes(a, &[axis], "expand_dims")?;
    Ok(raw::expand_dims_axis(&a.0, axis)?.into())
}

/// A view with new dimensions of length 1 at `axes` of the result. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::expand_dims_axes(&Array::zeros::<f32>(3)?, &[0, 2])?.shape(), [1, 3, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions of the result; [`ErrorKind::InvalidArgument`] for one named twice.
///
/// # Source
/// C++ `mlx::core::expand_dims` (`mlx/ops.h`).
pub fn expand_dims_axes(a: &Array, axes: &[i32]) -> Result<Array> {
    check::new_axes(a, axes, "expand_dims")?;
    Ok(raw::expand_dims_axes(&a.0, axes)?.into())
}

/// A view without the dimension of length 1 at `axis`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::squeeze(&Array::zeros::<f32>((3, 1))?, -1)?.shape(), [3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions, [`ErrorKind::InvalidArgument`] for one that is longer than 1.
///
/// # Source
/// C++ `mlx::core::squeeze` (`mlx/ops.h`).
pub fn squeeze(a: &Array, axis: i32) -> Result<Array> {
    check::axis_length(a, axis, "squeeze")?;
    Ok(raw::squeeze_axis(&a.0, axis)?.into())
}

/// A view without the dimensions of length 1 at `axes`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::squeeze_axes(&Array::zeros::<f32>((1, 3, 1))?, &[0, 2])?.shape(), [3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice, [`ErrorKind::InvalidArgument`] for one longer than 1.
///
/// # Source
/// C++ `mlx::core::squeeze` (`mlx/ops.h`).
pub fn squeeze_axes(a: &Array, axes: &[i32]) -> Result<Array> {
    check::axes(a, axes, "squeeze")?;
    Ok(raw::squeeze_axes(&a.0, axes)?.into())
}

/// A view without any dimension of length 1. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::squeeze_all(&Array::zeros::<f32>((1, 3, 1))?)?.shape(), [3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::squeeze` (`mlx/ops.h`).
pub fn squeeze_all(a: &Array) -> Result<Array> {
    Ok(raw::squeeze_all(&a.0)?.into())
}

/// The elements along one axis in reverse order. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::flip(&Array::vector(&[1i32, 2, 3])?, 0)?.to_vec::<i32>()?, [3, 2, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::flip` (`mlx/ops.h`).
pub fn flip(a: &Array, axis: i32) -> Result<Array> {
    check::axis_length(a, axis, "flip")?;
    Ok(raw::flip_axis(&a.0, axis)?.into())
}

/// The elements along several axes in reverse order. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
/// assert_eq!(ops::flip_axes(&a, &[0, 1])?.to_vec::<i32>()?, [4, 3, 2, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice.
///
/// # Source
/// C++ `mlx::core::flip` (`mlx/ops.h`).
pub fn flip_axes(a: &Array, axes: &[i32]) -> Result<Array> {
    check::axes(a, axes, "flip")?;
    Ok(raw::flip_axes(&a.0, axes)?.into())
}

/// The elements along every axis in reverse order. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
/// assert_eq!(ops::flip_all(&a)?.to_vec::<i32>()?, [4, 3, 2, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::flip` (`mlx/ops.h`).
pub fn flip_all(a: &Array) -> Result<Array> {
    Ok(raw::flip_all(&a.0)?.into())
}

/// A view that repeats dimensions of length 1 up to `shape`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1i32, 2])?;
/// assert_eq!(ops::broadcast_to(&a, (2, 2))?.to_vec::<i32>()?, [1, 2, 1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the array does not broadcast to the shape; [`ErrorKind::Shape`] for one that is none.
///
/// # Source
/// C++ `mlx::core::broadcast_to` (`mlx/ops.h`).
pub fn broadcast_to<'s>(a: &Array, shape: impl IntoShape<'s>) -> Result<Array> {
    let shape = shape.into_shape();
    check::possible(&shape, "broadcast_to")?;
    Ok(raw::broadcast_to(&a.0, &shape)?.into())
}

/// Views of all arrays with their common shape. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let both = ops::broadcast_arrays(&[Array::zeros::<f32>((2, 1))?, Array::zeros::<f32>(3)?])?;
/// assert_eq!((both[0].shape(), both[1].shape()), (&[2, 3][..], &[2, 3][..]));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::broadcast_arrays` (`mlx/ops.h`).
pub fn broadcast_arrays(arrays: &[Array]) -> Result<Vec<Array>> {
    Ok(Array::wrap_all(raw::broadcast_arrays(Array::raw(arrays))?))
}

/// Declares the functions that add dimensions up to a number.
macro_rules! at_least {
    ($($name:ident, $each:ident, $n:literal => $shape:literal);+ $(;)?) => {$(
        #[doc = concat!("A view with at least ", $n, " dimensions: new ones have length 1. Lazy.")]
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&Array::scalar(1i32)?)?.shape(), ", $shape, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// Only what every entry into MLX can report.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array) -> Result<Array> {
            Ok(raw::$name(&a.0)?.into())
        }

        #[doc = concat!("[`", stringify!($name), "`] of each array. Lazy.")]
        ///
        /// # Errors
        /// Only what every entry into MLX can report.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $each(arrays: &[Array]) -> Result<Vec<Array>> {
            Ok(Array::wrap_all(raw::$each(Array::raw(arrays))?))
        }
    )+};
}

at_least! {
    atleast_1d, atleast_1d_each, "one" => "[1]";
    atleast_2d, atleast_2d_each, "two" => "[1, 1]";
    atleast_3d, atleast_3d_each, "three" => "[1, 1, 1]";
}

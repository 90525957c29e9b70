//! Arrays made from nothing: constants and ranges.

use oxmlx_sys::generated::ops as raw;

use crate::shape::{IntoShape, element_count};
use crate::{Array, Dtype, Element, Error, ErrorKind, Result};

fn checked<'s>(op: &'static str, shape: impl IntoShape<'s>) -> Result<std::borrow::Cow<'s, [i32]>> {
    let shape = shape.into_shape();
    if element_count(&shape).is_none() {
        return Err(Error::new(ErrorKind::Shape, op, format!("no array has the shape {shape:?}")).with_shape(&shape));
    }
    Ok(shape)
}

/// An array of zeros. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::zeros((2, 2), Dtype::Int32)?.to_vec::<i32>()?, [0; 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative dimension.
///
/// # Source
/// C++ `mlx::core::zeros` (`mlx/ops.h`).
pub fn zeros<'s>(shape: impl IntoShape<'s>, dtype: Dtype) -> Result<Array> {
    Ok(raw::zeros(&checked("zeros", shape)?, dtype)?.into())
}

/// An array of ones. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::ones(3, Dtype::Float32)?.to_vec::<f32>()?, [1.0; 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative dimension.
///
/// # Source
/// C++ `mlx::core::ones` (`mlx/ops.h`).
pub fn ones<'s>(shape: impl IntoShape<'s>, dtype: Dtype) -> Result<Array> {
    Ok(raw::ones(&checked("ones", shape)?, dtype)?.into())
}

/// An array of `shape` filled with `values`, which broadcast to it. Dtype: that of `values`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::full(2, &Array::scalar(7i32)?)?.to_vec::<i32>()?, [7, 7]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative dimension; [`ErrorKind::InvalidArgument`] when `values` does not broadcast to the shape.
///
/// # Source
/// C++ `mlx::core::full` (`mlx/ops.h`).
pub fn full<'s>(shape: impl IntoShape<'s>, values: &Array) -> Result<Array> {
    Ok(raw::full(&checked("full", shape)?, &values.0)?.into())
}

/// The numbers from `start` up to, and without, `stop`, by `step`. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::arange(0.0, 5.0, 2.0, Dtype::Int32)?.to_vec::<i32>()?, [0, 2, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when a bound or the step is not finite, the step is zero, or the range is too long.
///
/// # Source
/// C++ `mlx::core::arange` (`mlx/ops.h`).
pub fn arange(start: f64, stop: f64, step: f64, dtype: Dtype) -> Result<Array> {
    if !(start.is_finite() && stop.is_finite() && step.is_finite()) || step == 0.0 {
        let text = format!("start {start}, stop {stop}, step {step}: all must be finite and the step not zero");
        return Err(Error::new(ErrorKind::InvalidArgument, "arange", text));
    }
    Ok(raw::arange(start, stop, step, dtype)?.into())
}

impl Array {
    /// An array of zeros of `T`'s dtype. See [`ops::zeros`](zeros).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a negative dimension.
    pub fn zeros<'s, T: Element>(shape: impl IntoShape<'s>) -> Result<Self> {
        zeros(shape, T::DTYPE)
    }

    /// An array of ones of `T`'s dtype. See [`ops::ones`](ones).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a negative dimension.
    pub fn ones<'s, T: Element>(shape: impl IntoShape<'s>) -> Result<Self> {
        ones(shape, T::DTYPE)
    }
}

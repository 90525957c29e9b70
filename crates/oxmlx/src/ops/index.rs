//! Reading and writing parts of arrays.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Dtype, Error, ErrorKind, Result};

/// The slices of `a` at `indices` along `axis`.
///
/// Shapes: `[.., n, ..]` and indices `[k..]` give `[.., k.., ..]`. Dtypes: `a` any, `indices` integer. Lazy. An index below zero
/// counts from the end; one outside `-n..n` is **clamped** into it.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::from_slice(&[10i32, 20, 30], 3)?;
/// let i = Array::from_slice(&[2i32, -1, 0, 100_000_000], 4)?;
/// assert_eq!(ops::take(&a, &i, 0)?.to_vec::<i32>()?, [30, 30, 10, 30]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions, [`ErrorKind::Dtype`] for indices that are no integers,
/// [`ErrorKind::Index`] for indices into an axis of length zero.
///
/// # Source
/// C++ `mlx::core::take` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn take(a: &Array, indices: &Array, axis: i32) -> Result<Array> {
    let length = axis_length(a, axis, "take")?;
    if !indices.dtype().is_integer() {
        let text = format!("indices must be integers, not {}", indices.dtype());
        return Err(Error::new(ErrorKind::Dtype, "take", text).with_dtype(indices.dtype()));
    }
    if length == 0 && indices.size() > 0 {
        let text = format!("axis {axis} of shape {:?} has no elements to take", a.shape());
        return Err(Error::new(ErrorKind::Index, "take", text).with_shape(a.shape()));
    }
    Ok(raw::take_axis(&a.0, &clamped(indices, length)?.0, axis)?.into())
}

/// Indices forced into `-length..length` (or `0..length` when unsigned).
fn clamped(indices: &Array, length: i32) -> Result<Array> {
    let bound = |value: i64| super::astype(&Array::scalar(value)?, indices.dtype());
    let last = i64::from(length) - 1;
    let unsigned = matches!(indices.dtype(), Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64);
    // A narrow type can't hold a bound beyond its own range, and needs none.
    let widest = match indices.dtype() {
        Dtype::Int8 => i64::from(i8::MAX),
        Dtype::Uint8 => i64::from(u8::MAX),
        Dtype::Int16 => i64::from(i16::MAX),
        Dtype::Uint16 => i64::from(u16::MAX),
        _ => i64::from(i32::MAX),
    };
    let upper = super::minimum(indices, &bound(last.min(widest))?)?;
    if unsigned {
        return Ok(upper);
    }
    super::maximum(&upper, &bound((-i64::from(length)).max(-widest - 1))?)
}

/// [`take`] of indices that are known to be in range: no clamp, two nodes fewer.
///
/// # Safety
/// Every index, once evaluated, lies in `-n..n`, where `n` is the length of `axis`. MLX reads foreign memory otherwise.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::take` (`mlx/ops.h`).
#[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the bridge trusts its caller")]
pub unsafe fn take_unchecked(a: &Array, indices: &Array, axis: i32) -> Result<Array> {
    Ok(raw::take_axis(&a.0, &indices.0, axis)?.into())
}

/// The part of `a` from `start` up to, and without, `stop`, by `strides`: one entry a dimension. Lazy.
///
/// Entries below zero count from the end; those outside are clamped, as in Python.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::from_slice(&[0i32, 1, 2, 3, 4, 5], (2, 3))?;
/// assert_eq!(ops::slice(&a, &[0, 1], &[2, 3], &[1, 1])?.to_vec::<i32>()?, [1, 2, 4, 5]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] when `start`, `stop` and `strides` do not have one entry a dimension, or a stride is zero.
///
/// # Source
/// C++ `mlx::core::slice` (`mlx/ops.h`).
pub fn slice(a: &Array, start: &[i32], stop: &[i32], strides: &[i32]) -> Result<Array> {
    check_bounds(a, start, stop, strides, "slice")?;
    Ok(raw::slice(&a.0, start, stop, strides)?.into())
}

/// A copy of `source` whose part from `start` to `stop` by `strides` is `update`. In place where nobody else holds `source`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<i32>(4)?;
/// let b = ops::slice_update(&a, &Array::from_slice(&[7i32, 8], 2)?, &[1], &[3], &[1])?;
/// assert_eq!(b.to_vec::<i32>()?, [0, 7, 8, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`slice()`]; [`ErrorKind::InvalidArgument`] when `update` does not broadcast to the part.
///
/// # Source
/// C++ `mlx::core::slice_update` (`mlx/ops.h`).
pub fn slice_update(source: &Array, update: &Array, start: &[i32], stop: &[i32], strides: &[i32]) -> Result<Array> {
    check_bounds(source, start, stop, strides, "slice_update")?;
    Ok(raw::slice_update(&source.0, &update.0, start, stop, strides)?.into())
}

fn check_bounds(a: &Array, start: &[i32], stop: &[i32], strides: &[i32], op: &'static str) -> Result<()> {
    if [start, stop, strides].iter().any(|part| part.len() != a.ndim()) || strides.contains(&0) {
        let text = format!(
            "start {start:?}, stop {stop:?} and strides {strides:?} must each have {} entries, and no stride be zero",
            a.ndim()
        );
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()));
    }
    Ok(())
}

/// The length of one axis, counted from the end when negative.
pub(crate) fn axis_length(a: &Array, axis: i32, op: &'static str) -> Result<i32> {
    a.dim(axis).ok_or_else(|| {
        let text = format!("axis {axis} is outside the {} dimensions of shape {:?}", a.ndim(), a.shape());
        Error::new(ErrorKind::Axis, op, text).with_shape(a.shape())
    })
}

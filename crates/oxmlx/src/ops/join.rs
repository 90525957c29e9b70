//! Putting arrays together, taking them apart, repeating and padding them.

use oxmlx_sys::generated::ops as raw;
pub use oxmlx_sys::types::PadMode;

use super::{astype, check, full, where_};
use crate::{Array, Error, ErrorKind, Result};

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
/// [`ErrorKind::InvalidArgument`] for no arrays, or shapes that differ outside `axis`; [`ErrorKind::Axis`] for an axis outside the
/// dimensions; [`ErrorKind::Shape`] for a sum of lengths over `i32::MAX`.
///
/// # Source
/// C++ `mlx::core::concatenate` (`mlx/ops.h`).
pub fn concatenate(arrays: &[Array], axis: i32) -> Result<Array> {
    let Some(first) = arrays.first() else {
        return Err(Error::new(ErrorKind::InvalidArgument, "concatenate", "there is no array to concatenate"));
    };
    check::axis_length(first, axis, "concatenate")?;
    let total = arrays.iter().map(|a| i64::from(a.dim(axis).unwrap_or(0))).sum();
    check::length(total, "the joined dimension", "concatenate")?;
    Ok(raw::concatenate(Array::raw(arrays), axis)?.into())
}

/// The arrays, all of one shape, side by side along a new `axis`. Dtypes: promoted to a common one. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[1i32, 2])?, Array::vector(&[3i32, 4])?);
/// assert_eq!(ops::stack(&[a, b], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for no arrays or shapes that differ; [`ErrorKind::Axis`] for an axis outside
/// the dimensions of the result.
///
/// # Source
/// C++ `mlx::core::stack` (`mlx/ops.h`).
pub fn stack(arrays: &[Array], axis: i32) -> Result<Array> {
    if arrays.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "stack", "there is no array to stack"));
    }
    check::new_axes(&arrays[0], &[axis], "stack")?;
    Ok(raw::stack(Array::raw(arrays), axis)?.into())
}

/// `parts` pieces of equal length along `axis`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let halves = ops::split(&Array::vector(&[1i32, 2, 3, 4])?, 2, 0)?;
/// assert_eq!(halves[1].to_vec::<i32>()?, [3, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Shape`] when `parts` is not positive or does not divide
/// the axis.
///
/// # Source
/// C++ `mlx::core::split` (`mlx/ops.h`).
pub fn split(a: &Array, parts: i32, axis: i32) -> Result<Vec<Array>> {
    let length = check::axis_length(a, axis, "split")?;
    // Each part knows all others in MLX: the square of their number is held.
    if parts < 1 || length % parts != 0 || parts > 10_000 {
        let text =
            format!("axis {axis} of shape {:?} does not split into {parts} equal parts, 10000 at most", a.shape());
        return Err(Error::new(ErrorKind::Shape, "split", text).with_shape(a.shape()));
    }
    Ok(Array::wrap_all(raw::split(&a.0, parts, axis)?))
}

/// The pieces between the places `at` along `axis`: one more than there are places. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let parts = ops::split_at(&Array::vector(&[1i32, 2, 3, 4])?, &[1, 3], 0)?;
/// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::split` (`mlx/ops.h`).
pub fn split_at(a: &Array, at: &[i32], axis: i32) -> Result<Vec<Array>> {
    check::axis_length(a, axis, "split")?;
    Ok(Array::wrap_all(raw::split_at(&a.0, at, axis)?))
}

/// The slices along `axis`, each without that axis. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let rows = ops::unstack(&Array::matrix(&[[1i32, 2], [3, 4]])?, 0)?;
/// assert_eq!(rows[1].to_vec::<i32>()?, [3, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::unstack` (`mlx/ops.h`).
pub fn unstack(a: &Array, axis: i32) -> Result<Vec<Array>> {
    if check::axis_length(a, axis, "unstack")? == 0 {
        return Ok(Vec::new());
    }
    Ok(Array::wrap_all(raw::unstack(&a.0, axis)?))
}

/// Each element `count` times along `axis`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::repeat_axis(&Array::vector(&[1i32, 2])?, 2, 0)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Shape`] for a negative count or a length over `i32::MAX`.
///
/// # Source
/// C++ `mlx::core::repeat` (`mlx/ops.h`).
pub fn repeat_axis(a: &Array, count: i32, axis: i32) -> Result<Array> {
    let length = check::axis_length(a, axis, "repeat")?;
    repeats(count, length.into())?;
    Ok(raw::repeat_axis(&a.0, count, axis)?.into())
}

/// Each of all elements `count` times, as a vector. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::repeat(&Array::vector(&[1i32, 2])?, 2)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative count or a length over `i32::MAX`.
///
/// # Source
/// C++ `mlx::core::repeat` (`mlx/ops.h`).
pub fn repeat(a: &Array, count: i32) -> Result<Array> {
    repeats(count, a.size() as i64)?;
    Ok(raw::repeat_all(&a.0, count)?.into())
}

fn repeats(count: i32, length: i64) -> Result<()> {
    if count < 0 {
        return Err(Error::new(ErrorKind::Shape, "repeat", format!("{count} times: it must not be negative")));
    }
    check::length(length.saturating_mul(count.into()), "the repeated dimension", "repeat").map(|_| ())
}

/// The whole array `reps[i]` times along dimension `i`; dimensions are added in front to have as many. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::tile(&Array::vector(&[1i32, 2])?, &[2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative number, a dimension over `i32::MAX` or a shape that can't be counted.
///
/// # Source
/// C++ `mlx::core::tile` (`mlx/ops.h`).
pub fn tile(a: &Array, reps: &[i32]) -> Result<Array> {
    let ndim = reps.len().max(a.ndim());
    let from_back = |list: &[i32], i: usize| i.checked_sub(ndim - list.len()).map_or(1, |i| list[i]);
    let mut shape = Vec::with_capacity(ndim);
    for i in 0..ndim {
        let (n, times) = (from_back(a.shape(), i), from_back(reps, i));
        shape.push(check::length(i64::from(n) * i64::from(times), "a tiled dimension", "tile")?);
        if times < 0 {
            return Err(Error::new(ErrorKind::Shape, "tile", format!("{times} times: it must not be negative")));
        }
    }
    check::possible(&shape, "tile")?;
    Ok(raw::tile(&a.0, reps)?.into())
}

/// The array with `widths[i].0` elements before and `widths[i].1` after dimension `i`.
///
/// `value`, one element, is what stands there in the mode [`PadMode::Constant`], zero when `None`. Dtypes: any. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1i32, 2])?;
/// assert_eq!(ops::pad(&a, &[(1, 2)], None, ops::PadMode::Constant)?.to_vec::<i32>()?, [0, 1, 2, 0, 0]);
/// assert_eq!(ops::pad(&a, &[(1, 2)], None, ops::PadMode::Edge)?.to_vec::<i32>()?, [1, 1, 2, 2, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for another number of widths than dimensions, a negative width, a length over `i32::MAX`, or an empty
/// dimension to mirror.
///
/// # Source
/// C++ `mlx::core::pad` (`mlx/ops.h`).
pub fn pad(a: &Array, widths: &[(i32, i32)], value: Option<&Array>, mode: PadMode) -> Result<Array> {
    if widths.len() != a.ndim() {
        let text = format!("{} widths given for the {} dimensions of shape {:?}", widths.len(), a.ndim(), a.shape());
        return Err(Error::new(ErrorKind::Shape, "pad", text).with_shape(a.shape()));
    }
    let axes: Vec<i32> = (0..a.ndim() as i32).collect();
    pad_axes(a, &axes, widths, value, mode)
}

/// [`pad`] along some axes: `widths[i]` around `axes[i]`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2]])?;
/// let b = ops::pad_axes(&a, &[-1], &[(1, 0)], Some(&Array::scalar(9i32)?), ops::PadMode::Constant)?;
/// assert_eq!(b.to_vec::<i32>()?, [9, 1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`pad`]; [`ErrorKind::Axis`] for an axis outside the dimensions or named twice.
///
/// # Source
/// C++ `mlx::core::pad` (`mlx/ops.h`).
pub fn pad_axes(a: &Array, axes: &[i32], widths: &[(i32, i32)], value: Option<&Array>, mode: PadMode) -> Result<Array> {
    check::axes(a, axes, "pad")?;
    let invalid = |text: String| Err(Error::new(ErrorKind::Shape, "pad", text).with_shape(a.shape()));
    if axes.len() != widths.len() {
        return invalid(format!("{} widths given for {} axes", widths.len(), axes.len()));
    }
    // MLX takes axes from the front only.
    let places: Vec<i32> =
        axes.iter().map(|&axis| Ok(check::axis_from_front(a, axis, "pad")? as i32)).collect::<Result<_>>()?;
    let mut shape = a.shape().to_vec();
    for (&axis, &(before, after)) in places.iter().zip(widths) {
        if before < 0 || after < 0 {
            return invalid(format!("the widths {before} and {after} of axis {axis} must not be negative"));
        }
        let n = shape[axis as usize];
        if n == 0 && mode != PadMode::Constant && (before, after) != (0, 0) {
            return invalid(format!("axis {axis} of shape {:?} has no elements to repeat", a.shape()));
        }
        shape[axis as usize] =
            check::length(i64::from(n) + i64::from(before) + i64::from(after), "a padded dimension", "pad")?;
    }
    check::possible(&shape, "pad")?;
    let zero;
    let value = match value {
        Some(value) => value,
        None => {
            zero = Array::scalar(0i32)?;
            &zero
        }
    };
    let (low, high): (Vec<i32>, Vec<i32>) = widths.iter().copied().unzip();
    if mode != PadMode::Constant {
        return Ok(raw::pad_axes(&a.0, &places, &low, &high, &value.0, mode)?.into());
    }
    if value.size() != 1 {
        return invalid(format!("the value of shape {:?} is not one element", value.shape()));
    }
    let around = |a: &Array, value: &Array| raw::pad_axes(&a.0, &places, &low, &high, &value.0, mode).map(Array::from);
    if !oxmlx_sys::trace::is_tracing() {
        return Ok(around(a, value)?);
    }
    // MLX's derivatives take the value for a constant, and read past a list when it is not.
    let inside = around(&full(a.shape(), &Array::scalar(true)?)?, &Array::scalar(false)?)?;
    let value = astype(&value.reshape(())?, a.dtype())?;
    where_(&inside, &around(a, &Array::scalar(0i32)?)?, &value)
}

/// The elements moved by `shift` along `axis`; what leaves at one end enters at the other. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::roll_axis(&Array::vector(&[1i32, 2, 3])?, 1, 0)?.to_vec::<i32>()?, [3, 1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::roll` (`mlx/ops.h`); differs: a shift of `i32::MIN` is undefined in some releases.
pub fn roll_axis(a: &Array, shift: i32, axis: i32) -> Result<Array> {
    let length = check::axis_length(a, axis, "roll")?;
    Ok(raw::roll_axis(&a.0, within(shift, length.into()), axis)?.into())
}

/// [`roll_axis`] along several axes: by `shifts[i]` along `axes[i]`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
/// assert_eq!(ops::roll_axes(&a, &[1, 1], &[0, 1])?.to_vec::<i32>()?, [4, 3, 2, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Shape`] for other numbers of shifts and axes.
///
/// # Source
/// C++ `mlx::core::roll` (`mlx/ops.h`).
pub fn roll_axes(a: &Array, shifts: &[i32], axes: &[i32]) -> Result<Array> {
    if shifts.len() != axes.len() {
        let text = format!("{} shifts given for {} axes", shifts.len(), axes.len());
        return Err(Error::new(ErrorKind::Shape, "roll", text));
    }
    let shifts: Vec<i32> = shifts
        .iter()
        .zip(axes)
        .map(|(&shift, &axis)| Ok(within(shift, check::axis_length(a, axis, "roll")?.into())))
        .collect::<Result<_>>()?;
    Ok(raw::roll_axes(&a.0, &shifts, axes)?.into())
}

/// All elements moved by `shift` in row-major order; the shape stays. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
/// assert_eq!(ops::roll(&a, -1)?.to_vec::<i32>()?, [2, 3, 4, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::roll` (`mlx/ops.h`).
pub fn roll(a: &Array, shift: i32) -> Result<Array> {
    Ok(raw::roll_all(&a.0, within(shift, a.size() as i64))?.into())
}

/// The same shift as a number from 0 up to the length.
fn within(shift: i32, length: i64) -> i32 {
    if length == 0 { 0 } else { i64::from(shift).rem_euclid(length) as i32 }
}

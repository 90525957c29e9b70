//! Reading parts of arrays: by indices, by ranges.
//!
//! MLX reads foreign memory for an index outside its axis. Here indices are **clamped** into the axis inside the graph (two nodes; none
//! for a constant that is in range), so that no evaluation is forced; `unsafe` twins leave that out.

use oxmlx_sys::generated::ops as raw;

use super::{check, integer};
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
    let length = check::axis_length(a, axis, "take")?;
    Ok(raw::take_axis(&a.0, &into_axis(indices, length, 1, "take")?.0, axis)?.into())
}

/// The elements at `indices` in row-major order. See [`take`].
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[10i32, 20], [30, 40]])?;
/// assert_eq!(ops::take_all(&a, &Array::vector(&[3i32, -4])?)?.to_vec::<i32>()?, [40, 10]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for indices that are no integers, [`ErrorKind::Index`] for indices into no elements.
///
/// # Source
/// C++ `mlx::core::take` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn take_all(a: &Array, indices: &Array) -> Result<Array> {
    let length = check::length(a.size() as i64, "the array", "take")?;
    Ok(raw::take_all(&a.0, &into_axis(indices, length, 1, "take")?.0)?.into())
}

/// The slice of `a` at one index along `axis`, without that axis. A negative index counts from the end.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[10i32, 20], [30, 40]])?;
/// assert_eq!(ops::take_index(&a, -1, 0)?.to_vec::<i32>()?, [30, 40]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions, [`ErrorKind::Index`] for an index outside the axis.
///
/// # Source
/// C++ `mlx::core::take(a, int, axis)` (`mlx/ops.h`).
pub fn take_index(a: &Array, index: i32, axis: i32) -> Result<Array> {
    let length = check::axis_length(a, axis, "take")?;
    if !(-length..length).contains(&index) {
        let text = format!("index {index} is outside axis {axis} of shape {:?}", a.shape());
        return Err(Error::new(ErrorKind::Index, "take", text).with_shape(a.shape()));
    }
    // MLX slices from the index to the one after it, which from -1 is nothing.
    let index = if index < 0 { index + length } else { index };
    Ok(raw::take_index_axis(&a.0, index, axis)?.into())
}

/// For every position the element whose place along `axis` stands in `indices`.
///
/// Shapes: `a` and `indices` have as many dimensions and broadcast but for `axis`; the result has the shape of `indices`. Dtypes: `a`
/// any, `indices` integer. Lazy. Indices count from the end below zero and are **clamped** into the axis.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[10i32, 20], [30, 40]])?;
/// let i = Array::matrix(&[[1i32], [0]])?;
/// assert_eq!(ops::take_along_axis(&a, &i, 1)?.to_vec::<i32>()?, [20, 30]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`take`]; [`ErrorKind::InvalidArgument`] for shapes that do not fit.
///
/// # Source
/// C++ `mlx::core::take_along_axis` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn take_along_axis(a: &Array, indices: &Array, axis: i32) -> Result<Array> {
    let length = check::axis_length(a, axis, "take_along_axis")?;
    let indices = into_axis(indices, length, 1, "take_along_axis")?;
    Ok(raw::take_along_axis(&a.0, &indices.0, axis)?.into())
}

/// Slices of `sizes` that start at `indices[i]` along `axes[i]`, all broadcast, and at 0 along the others.
///
/// Shapes: indices `[k..]` give `[k.., sizes..]`. Dtypes: `a` any, `indices` integer. Lazy. Starts are **clamped** so that the whole
/// slice lies inside.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4], [5, 6]])?;
/// let rows = ops::gather(&a, &[Array::vector(&[2i32, 0])?], &[0], &[1, 2])?;
/// assert_eq!(rows.shape(), [2, 1, 2]);
/// assert_eq!(rows.to_vec::<i32>()?, [5, 6, 1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice, [`ErrorKind::Shape`] for another number of indices than
/// axes or of sizes than dimensions, [`ErrorKind::Dtype`] for indices that are no integers, [`ErrorKind::InvalidArgument`] for a size
/// outside the dimension.
///
/// # Source
/// C++ `mlx::core::gather` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn gather(a: &Array, indices: &[Array], axes: &[i32], sizes: &[i32]) -> Result<Array> {
    let axes = gather_axes(a, indices, axes, "gather")?;
    if sizes.len() != a.ndim() || sizes.iter().zip(a.shape()).any(|(&size, &n)| size < 0 || size > n) {
        let text = format!("sizes {sizes:?} do not fit the shape {:?}", a.shape());
        return Err(Error::new(ErrorKind::Shape, "gather", text).with_shape(a.shape()));
    }
    let indices = indices
        .iter()
        .zip(&axes)
        .map(|(i, &axis)| into_axis(i, a.shape()[axis as usize], sizes[axis as usize], "gather"))
        .collect::<Result<Vec<_>>>()?;
    Ok(raw::gather(&a.0, Array::raw(&indices), &axes, sizes)?.into())
}

/// The axes from the front, one for each index array.
pub(super) fn gather_axes(a: &Array, indices: &[Array], axes: &[i32], op: &'static str) -> Result<Vec<i32>> {
    check::axes(a, axes, op)?;
    if indices.len() != axes.len() {
        let text = format!("{} index arrays given for {} axes", indices.len(), axes.len());
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()));
    }
    axes.iter().map(|&axis| Ok(check::axis_from_front(a, axis, op)? as i32)).collect()
}

/// Indices forced to where a slice of `size` fits into `length`: into `-length..length` for one element.
pub(crate) fn into_axis(indices: &Array, length: i32, size: i32, op: &'static str) -> Result<Array> {
    check::integer(indices, op)?;
    if length == 0 && size > 0 && indices.size() > 0 {
        return Err(Error::new(ErrorKind::Index, op, "the axis has no elements to index".to_owned()));
    }
    let last = i64::from(length) - i64::from(size);
    let first = if size == 1 { -i64::from(length) } else { 0 };
    if integer::constant(indices)?.is_some_and(|i| (first..=last).contains(&i)) {
        return Ok(indices.clone());
    }
    if size == 1 || !is_signed(indices.dtype()) {
        return clamp(indices, first, last);
    }
    // A longer slice can't start below zero: count from the end first.
    let zero = like(0, indices.dtype())?;
    let from_end = super::add(indices, &super::astype(&Array::scalar(length)?, wide(indices.dtype()))?)?;
    let counted = super::where_(&super::less(indices, &zero)?, &from_end, indices)?;
    clamp(&counted, 0, last)
}

fn is_signed(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64)
}

/// A signed dtype that holds any length.
fn wide(dtype: Dtype) -> Dtype {
    if dtype == Dtype::Int64 { Dtype::Int64 } else { Dtype::Int32 }
}

fn like(value: i64, dtype: Dtype) -> Result<Array> {
    super::astype(&Array::scalar(value)?, dtype)
}

/// Values forced into `first..=last`. A narrow dtype can't hold a bound beyond its own range, and needs none.
pub(crate) fn clamp(values: &Array, first: i64, last: i64) -> Result<Array> {
    let dtype = values.dtype();
    let widest = match dtype {
        Dtype::Int8 => i64::from(i8::MAX),
        Dtype::Uint8 => i64::from(u8::MAX),
        Dtype::Int16 => i64::from(i16::MAX),
        Dtype::Uint16 => i64::from(u16::MAX),
        _ => i64::from(i32::MAX),
    };
    let upper = super::minimum(values, &like(last.min(widest), dtype)?)?;
    if !is_signed(dtype) {
        return Ok(upper);
    }
    super::maximum(&upper, &like(first.max(-widest - 1), dtype)?)
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

/// [`take_along_axis`] of indices that are known to be in range.
///
/// # Safety
/// Every index, once evaluated, lies in `-n..n`, where `n` is the length of `axis`. MLX reads foreign memory otherwise.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for shapes that do not fit.
///
/// # Source
/// C++ `mlx::core::take_along_axis` (`mlx/ops.h`).
#[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the bridge trusts its caller")]
pub unsafe fn take_along_axis_unchecked(a: &Array, indices: &Array, axis: i32) -> Result<Array> {
    check::axis_length(a, axis, "take_along_axis")?;
    Ok(raw::take_along_axis(&a.0, &indices.0, axis)?.into())
}

/// [`gather`] of starts that are known to be in range.
///
/// # Safety
/// Every slice, once evaluated, lies inside `a`: a start is in `-n..=n - size`, and below zero only for a size of 1. MLX reads foreign
/// memory otherwise.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for axes, indices and sizes that do not fit.
///
/// # Source
/// C++ `mlx::core::gather` (`mlx/ops.h`).
#[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the bridge trusts its caller")]
pub unsafe fn gather_unchecked(a: &Array, indices: &[Array], axes: &[i32], sizes: &[i32]) -> Result<Array> {
    Ok(raw::gather(&a.0, Array::raw(indices), axes, sizes)?.into())
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
    let strides = check_bounds(a, start, stop, strides, "slice")?;
    Ok(raw::slice(&a.0, start, stop, &strides)?.into())
}

/// The part of `a` with `sizes` that starts at `start[i]` along `axes[i]`, and at 0 along the others. Lazy.
///
/// Shapes: `start` `[axes]`; the result has `sizes`. Dtypes: `a` any, `start` integer. The starts are a node of the graph and are
/// **clamped** so that the part lies inside.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1i32, 2, 3, 4])?;
/// assert_eq!(ops::slice_dynamic(&a, &Array::vector(&[1i32])?, &[0], &[2])?.to_vec::<i32>()?, [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice; [`ErrorKind::Shape`] for another number of starts than axes
/// or sizes that do not fit; [`ErrorKind::Dtype`] for starts that are no integers.
///
/// # Source
/// C++ `mlx::core::slice(a, start, axes, slice_size)` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn slice_dynamic(a: &Array, start: &Array, axes: &[i32], sizes: &[i32]) -> Result<Array> {
    let start = dynamic_start(a, start, axes, sizes, "slice")?;
    Ok(raw::slice_dynamic(&a.0, &start.0, axes, sizes)?.into())
}

/// The starts of a dynamic slice, forced to where `sizes` fit.
pub(super) fn dynamic_start(a: &Array, start: &Array, axes: &[i32], sizes: &[i32], op: &'static str) -> Result<Array> {
    check::axes(a, axes, op)?;
    check::integer(start, op)?;
    let fits = sizes.len() == a.ndim() && sizes.iter().zip(a.shape()).all(|(&size, &n)| (0..=n).contains(&size));
    if !fits || start.ndim() > 1 || start.size() != axes.len() {
        let text = format!(
            "starts of shape {:?} along axes {axes:?} with sizes {sizes:?} do not fit the shape {:?}",
            start.shape(),
            a.shape()
        );
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()).with_shape(start.shape()));
    }
    if axes.is_empty() {
        return Ok(start.clone());
    }
    let last: Vec<i64> = axes
        .iter()
        .map(|&axis| {
            let place = check::axis_from_front(a, axis, op)?;
            Ok(i64::from(a.shape()[place]) - i64::from(sizes[place]))
        })
        .collect::<Result<_>>()?;
    // In 64 bits, so that any start can be compared, then back to what MLX takes.
    let wide = super::astype(start, Dtype::Int64)?;
    let upper = super::minimum(&wide, &Array::vector(&last)?)?;
    let inside = super::maximum(&upper, &Array::scalar(0i64)?)?;
    super::reshape(&super::astype(&inside, Dtype::Int32)?, last.len() as i32)
}

/// Checks the bounds of a slice and returns its strides, none longer than its dimension: MLX adds them to lengths in 32 bits.
pub(super) fn check_bounds(
    a: &Array,
    start: &[i32],
    stop: &[i32],
    strides: &[i32],
    op: &'static str,
) -> Result<Vec<i32>> {
    if [start, stop, strides].iter().any(|part| part.len() != a.ndim()) || strides.contains(&0) {
        let text = format!(
            "start {start:?}, stop {stop:?} and strides {strides:?} must each have {} entries, and no stride be zero",
            a.ndim()
        );
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()));
    }
    Ok(strides.iter().zip(a.shape()).map(|(&stride, &n)| stride.clamp(-n.max(1), n.max(1))).collect())
}

//! Sorting, partial sorting and what follows from an order.

use oxmlx_sys::generated::ops as raw;
pub use oxmlx_sys::types::Side;

use super::check;
use crate::{Array, Error, ErrorKind, Result};

/// The values in rising order along `axis`; NaN last. Dtypes: any real. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::sort_axis(&Array::vector(&[3i32, 1, 2])?, -1)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::sort` (`mlx/ops.h`).
pub fn sort_axis(a: &Array, axis: i32) -> Result<Array> {
    Ok(raw::sort_axis(&a.0, front(a, axis, "sort")?)?.into())
}

/// All values in rising order, as a vector. See [`sort_axis`].
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::sort(&Array::matrix(&[[3i32, 1], [2, 0]])?)?.to_vec::<i32>()?, [0, 1, 2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::sort` (`mlx/ops.h`).
pub fn sort(a: &Array) -> Result<Array> {
    Ok(raw::sort_all(&a.0)?.into())
}

/// The indices that sort the values along `axis`. Result: uint32. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::argsort_axis(&Array::vector(&[3i32, 1, 2])?, -1)?.to_vec::<u32>()?, [1, 2, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::argsort` (`mlx/ops.h`).
pub fn argsort_axis(a: &Array, axis: i32) -> Result<Array> {
    Ok(raw::argsort_axis(&a.0, front(a, axis, "argsort")?)?.into())
}

/// The indices that sort all values, counted in row-major order. See [`argsort_axis`].
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::argsort(&Array::matrix(&[[3i32, 1], [2, 0]])?)?.to_vec::<u32>()?, [3, 1, 2, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::argsort` (`mlx/ops.h`).
pub fn argsort(a: &Array) -> Result<Array> {
    Ok(raw::argsort_all(&a.0)?.into())
}

/// The values with the `kth` smallest along `axis` in its sorted place, smaller ones before it and larger ones after it.
///
/// `kth` counts from the end when negative. Dtypes: any real. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let p = ops::partition_axis(&Array::vector(&[3i32, 1, 2])?, 1, -1)?.to_vec::<i32>()?;
/// assert_eq!(p[1], 2);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Index`] for a `kth` outside the axis.
///
/// # Source
/// C++ `mlx::core::partition` (`mlx/ops.h`).
pub fn partition_axis(a: &Array, kth: i32, axis: i32) -> Result<Array> {
    let axis = front(a, axis, "partition")?;
    kth_exists(kth, a.shape()[axis as usize].into(), "partition")?;
    Ok(raw::partition_axis(&a.0, kth, axis)?.into())
}

/// [`partition_axis`] of all values, as a vector.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::partition(&Array::matrix(&[[3i32, 1, 2]])?, 0)?.to_vec::<i32>()?[0], 1);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Index`] for a `kth` that does not exist.
///
/// # Source
/// C++ `mlx::core::partition` (`mlx/ops.h`).
pub fn partition(a: &Array, kth: i32) -> Result<Array> {
    kth_exists(kth, a.size() as i64, "partition")?;
    Ok(raw::partition_all(&a.0, kth)?.into())
}

/// The indices that partition the values along `axis`. See [`partition_axis`]. Result: uint32. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let p = ops::argpartition_axis(&Array::vector(&[3i32, 1, 2])?, 1, -1)?.to_vec::<u32>()?;
/// assert_eq!(p[1], 2);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Index`] for a `kth` outside the axis.
///
/// # Source
/// C++ `mlx::core::argpartition` (`mlx/ops.h`).
pub fn argpartition_axis(a: &Array, kth: i32, axis: i32) -> Result<Array> {
    let axis = front(a, axis, "argpartition")?;
    kth_exists(kth, a.shape()[axis as usize].into(), "argpartition")?;
    Ok(raw::argpartition_axis(&a.0, kth, axis)?.into())
}

/// [`argpartition_axis`] of all values, counted in row-major order.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::argpartition(&Array::matrix(&[[3i32, 1, 2]])?, 0)?.to_vec::<u32>()?[0], 1);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Index`] for a `kth` that does not exist.
///
/// # Source
/// C++ `mlx::core::argpartition` (`mlx/ops.h`).
pub fn argpartition(a: &Array, kth: i32) -> Result<Array> {
    kth_exists(kth, a.size() as i64, "argpartition")?;
    Ok(raw::argpartition_all(&a.0, kth)?.into())
}

/// The `k` largest values along `axis`, in no order. Dtypes: any real. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let top = ops::sort(&ops::topk_axis(&Array::vector(&[3i32, 1, 2])?, 2, -1)?)?;
/// assert_eq!(top.to_vec::<i32>()?, [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Index`] for a negative `k` or one over the axis.
///
/// # Source
/// C++ `mlx::core::topk` (`mlx/ops.h`).
pub fn topk_axis(a: &Array, k: i32, axis: i32) -> Result<Array> {
    let axis = front(a, axis, "topk")?;
    k_fits(k, a.shape()[axis as usize].into())?;
    Ok(raw::topk_axis(&a.0, k, axis)?.into())
}

/// The `k` largest of all values, in no order. See [`topk_axis`].
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::topk(&Array::matrix(&[[3i32, 1], [2, 0]])?, 1)?.to_vec::<i32>()?, [3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Index`] for a negative `k` or one over the number of values.
///
/// # Source
/// C++ `mlx::core::topk` (`mlx/ops.h`).
pub fn topk(a: &Array, k: i32) -> Result<Array> {
    k_fits(k, a.size() as i64)?;
    Ok(raw::topk_all(&a.0, k)?.into())
}

/// Where each of `values` would stand in the sorted vector: before or after values equal to it. Result: uint32. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let sorted = Array::vector(&[1i32, 3, 3, 5])?;
/// let at = ops::searchsorted(&sorted, &Array::vector(&[3i32, 9])?, ops::Side::Left)?;
/// assert_eq!(at.to_vec::<u32>()?, [1, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when `sorted` is no vector.
///
/// # Source
/// C++ `mlx::core::searchsorted` (`mlx/ops.h`).
pub fn searchsorted(sorted: &Array, values: &Array, side: Side) -> Result<Array> {
    Ok(raw::searchsorted(&sorted.0, &values.0, side)?.into())
}

/// The different values of an array and where they stand in it.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The values, rising.
    pub values: Array,
    /// For each value the index of its first occurrence, in row-major order. uint32.
    pub index: Array,
    /// For each element the index of its value. uint32.
    pub inverse: Array,
    /// How often each value occurs. int32.
    pub counts: Array,
}

/// The first `size` different values, rising, padded with `fill` (or the smallest value) to that many.
///
/// The number of values is not known before evaluation, so it is given. Dtypes: any real. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let u = ops::unique(&Array::vector(&[3i32, 1, 3])?, 2, None)?;
/// assert_eq!(u.values.to_vec::<i32>()?, [1, 3]);
/// assert_eq!(u.counts.to_vec::<i32>()?, [1, 2]);
/// assert_eq!(u.inverse.to_vec::<u32>()?, [1, 0, 1]);
/// assert_eq!(u.index.to_vec::<u32>()?, [1, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a negative `size`, or for no elements, no `fill` and a `size` over 0.
///
/// # Source
/// C++ `mlx::core::unique` (`mlx/ops.h`).
pub fn unique(a: &Array, size: i32, fill: Option<&Array>) -> Result<Unique> {
    let parts = raw::unique(&a.0, size, true, true, true, fill.map(|f| &f.0))?;
    let [values, index, inverse, counts] = check::exactly(parts, "unique")?;
    Ok(Unique { values, index, inverse, counts })
}

/// The different values alone. See [`unique`].
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::unique_values(&Array::vector(&[3i32, 1, 3])?, 2, None)?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`unique`].
///
/// # Source
/// C++ `mlx::core::unique` (`mlx/ops.h`).
pub fn unique_values(a: &Array, size: i32, fill: Option<&Array>) -> Result<Array> {
    let [values] = check::exactly(raw::unique(&a.0, size, false, false, false, fill.map(|f| &f.0))?, "unique")?;
    Ok(values)
}

/// MLX 0.32.4 sorts along a negative axis wrongly on some paths: it is counted from the front for it.
fn front(a: &Array, axis: i32, op: &'static str) -> Result<i32> {
    Ok(check::axis_from_front(a, axis, op)? as i32)
}

fn kth_exists(kth: i32, length: i64, op: &'static str) -> Result<()> {
    if (-length..length).contains(&i64::from(kth)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Index, op, format!("the {kth}th of {length} values does not exist")))
}

fn k_fits(k: i32, length: i64) -> Result<()> {
    if (0..=length).contains(&i64::from(k)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Index, "topk", format!("there are no {k} largest of {length} values")))
}

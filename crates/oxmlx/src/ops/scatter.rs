//! Writing parts of arrays: a new array in which some elements are other ones. In place where nobody else holds the old one.
//!
//! Indices are clamped into their axis as [`take`](super::take) clamps them.

use oxmlx_sys::generated::ops as raw;

use super::check;
use super::index::{check_bounds, dynamic_start, gather_axes, into_axis};
use crate::{Array, Error, ErrorKind, Result};

/// Declares the functions that write along one axis.
macro_rules! along_axis {
    ($($(#[$doc:meta])* $name:ident, $unchecked:ident => $output:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: `indices` has as many dimensions as `a`; `values` broadcasts to it. Dtypes: `a` any, `indices` integer; `values` are
        /// converted to `a`'s. Lazy. Indices count from the end below zero and are **clamped** into the axis.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::matrix(&[[10i32, 20], [30, 40]])?;
        /// let i = Array::matrix(&[[1i32], [0]])?;
        #[doc = concat!("let b = ops::", stringify!($name), "(&a, &i, &Array::scalar(7i32)?, 1)?;")]
        #[doc = concat!("assert_eq!(b.to_vec::<i32>()?, ", $output, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions, [`ErrorKind::Dtype`] for indices that are no integers,
        /// [`ErrorKind::InvalidArgument`] for shapes that do not fit.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`); differs: out of range is undefined there.")]
        pub fn $name(a: &Array, indices: &Array, values: &Array, axis: i32) -> Result<Array> {
            let length = check::axis_length(a, axis, stringify!($name))?;
            let indices = into_axis(indices, length, 1, stringify!($name))?;
            Ok(raw::$name(&a.0, &indices.0, &values.0, axis)?.into())
        }

        #[doc = concat!("[`", stringify!($name), "`] with indices that are known to be in range.")]
        ///
        /// # Safety
        /// Every index, once evaluated, lies in `-n..n`, where `n` is the length of `axis`. MLX writes into foreign memory otherwise.
        ///
        /// # Errors
        /// [`ErrorKind::InvalidArgument`] for shapes that do not fit.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the bridge trusts its caller")]
        pub unsafe fn $unchecked(a: &Array, indices: &Array, values: &Array, axis: i32) -> Result<Array> {
            check::axis_length(a, axis, stringify!($name))?;
            Ok(raw::$name(&a.0, &indices.0, &values.0, axis)?.into())
        }
    )+};
}

along_axis! {
    /// `a` with `values` at the places along `axis` that stand in `indices`. Of several values for one place any may stay.
    put_along_axis, put_along_axis_unchecked => "[10, 7, 7, 40]";
    /// `a` with `values` added at the places along `axis` that stand in `indices`.
    scatter_add_axis, scatter_add_axis_unchecked => "[10, 27, 37, 40]";
}

/// Declares the general scatters.
macro_rules! scatters {
    ($($(#[$doc:meta])* $name:ident, $unchecked:ident => $output:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: indices, all broadcast to `[k..]`, one for each of `axes`; updates `[k.., slice..]` with one slice dimension for each of
        /// `a`. A slice starts at its index along `axes` and at 0 along the others. Dtypes: `a` any, `indices` integer. Lazy. Starts are
        /// **clamped** so that the whole slice lies inside.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::vector(&[1i32, 2, 3])?;
        /// let (i, u) = (Array::vector(&[2i32])?, Array::matrix(&[[5i32]])?);
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&a, &[i], &u, &[0])?.to_vec::<i32>()?, ", $output, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice, [`ErrorKind::Shape`] for another number of indices than
        /// axes or updates that do not fit, [`ErrorKind::Dtype`] for indices that are no integers.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`); differs: out of range is undefined there.")]
        pub fn $name(a: &Array, indices: &[Array], updates: &Array, axes: &[i32]) -> Result<Array> {
            let (indices, axes) = scatter_indices(a, indices, updates, axes, stringify!($name))?;
            let made = raw::$name(&a.0, Array::raw(&indices), &updates.0, &axes)?;
            // MLX divides by the number of elements of an update.
            Ok(if updates.size() == 0 { a.clone() } else { made.into() })
        }

        #[doc = concat!("[`", stringify!($name), "`] with starts that are known to be in range.")]
        ///
        /// # Safety
        /// Every slice, once evaluated, lies inside `a`: a start is in `-n..=n - size`, and below zero only for a size of 1. MLX writes into
        /// foreign memory otherwise.
        ///
        /// # Errors
        /// [`ErrorKind::InvalidArgument`] for axes, indices and updates that do not fit.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the bridge trusts its caller")]
        pub unsafe fn $unchecked(a: &Array, indices: &[Array], updates: &Array, axes: &[i32]) -> Result<Array> {
            Ok(raw::$name(&a.0, Array::raw(indices), &updates.0, axes)?.into())
        }
    )+};
}

scatters! {
    /// `a` with slices replaced by `updates`. Of several updates for one place any may stay.
    scatter, scatter_unchecked => "[1, 2, 5]";
    /// `a` with `updates` added to slices.
    scatter_add, scatter_add_unchecked => "[1, 2, 8]";
    /// `a` with slices multiplied by `updates`.
    scatter_prod, scatter_prod_unchecked => "[1, 2, 15]";
    /// `a` with slices raised to `updates` where below them.
    scatter_max, scatter_max_unchecked => "[1, 2, 5]";
    /// `a` with slices lowered to `updates` where above them.
    scatter_min, scatter_min_unchecked => "[1, 2, 3]";
}

fn scatter_indices(
    a: &Array,
    indices: &[Array],
    updates: &Array,
    axes: &[i32],
    op: &'static str,
) -> Result<(Vec<Array>, Vec<i32>)> {
    let axes = gather_axes(a, indices, axes, op)?;
    let Some(slice) = updates.ndim().checked_sub(a.ndim()).map(|from| &updates.shape()[from..]) else {
        let text = format!("updates of shape {:?} have no slice of shape {:?}", updates.shape(), a.shape());
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()).with_shape(updates.shape()));
    };
    if slice.iter().zip(a.shape()).any(|(size, n)| size > n) {
        let text = format!("slices of shape {slice:?} do not fit the shape {:?}", a.shape());
        return Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()).with_shape(updates.shape()));
    }
    let inside = indices
        .iter()
        .zip(&axes)
        .map(|(i, &axis)| into_axis(i, a.shape()[axis as usize], slice[axis as usize], op))
        .collect::<Result<Vec<_>>>()?;
    Ok((inside, axes))
}

/// The update with the axes that the source is mapped over: MLX writes one that has none of them to the first place only.
fn one_for_each(source: &Array, update: &Array, start: &[i32], stop: &[i32], strides: &[i32]) -> Result<Array> {
    let part = raw::slice(&source.0, start, stop, strides)?.into();
    super::where_(&Array::scalar(true)?, &super::astype(update, source.dtype())?, &part)
}

/// Declares the writes to a range.
macro_rules! slice_updates {
    ($($(#[$doc:meta])* $name:ident => $output:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// In place where nobody else holds `source`. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::vector(&[1i32, 2, 3, 4])?;
        #[doc = concat!("let b = ops::", stringify!($name), "(&a, &Array::vector(&[7i32, 1])?, &[1], &[3], &[1])?;")]
        #[doc = concat!("assert_eq!(b.to_vec::<i32>()?, ", $output, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// As [`slice()`](super::slice()); [`ErrorKind::InvalidArgument`] when `update` does not broadcast to the part.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(source: &Array, update: &Array, start: &[i32], stop: &[i32], strides: &[i32]) -> Result<Array> {
            let strides = check_bounds(source, start, stop, strides, stringify!($name))?;
            let written = raw::$name(&source.0, &update.0, start, stop, &strides)?.into();
            if !oxmlx_sys::trace::is_mapping() {
                return Ok(written);
            }
            let update = one_for_each(source, update, start, stop, &strides)?;
            Ok(raw::$name(&source.0, &update.0, start, stop, &strides)?.into())
        }
    )+};
}

slice_updates! {
    /// `source` with `update` in place of its part from `start` to `stop` by `strides`.
    slice_update => "[1, 7, 1, 4]";
    /// `source` with `update` added to its part from `start` to `stop` by `strides`.
    slice_update_add => "[1, 9, 4, 4]";
    /// `source` with its part from `start` to `stop` by `strides` multiplied by `update`.
    slice_update_prod => "[1, 14, 3, 4]";
    /// `source` with its part from `start` to `stop` by `strides` raised to `update` where below it.
    slice_update_max => "[1, 7, 3, 4]";
    /// `source` with its part from `start` to `stop` by `strides` lowered to `update` where above it.
    slice_update_min => "[1, 2, 1, 4]";
}

/// `source` with `update` in place of the part that starts at `start[i]` along `axes[i]`, and at 0 along the others. Lazy.
///
/// The starts are a node of the graph and are **clamped** so that the part lies inside.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<i32>(4)?;
/// let b = ops::slice_update_dynamic(&a, &Array::vector(&[7i32])?, &Array::vector(&[2i32])?, &[0])?;
/// assert_eq!(b.to_vec::<i32>()?, [0, 0, 7, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`slice_dynamic`](super::slice_dynamic), the sizes being those of `update` with ones in front.
///
/// # Source
/// C++ `mlx::core::slice_update(src, update, start, axes)` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn slice_update_dynamic(source: &Array, update: &Array, start: &Array, axes: &[i32]) -> Result<Array> {
    let missing = source.ndim().saturating_sub(update.ndim());
    let mut sizes = vec![1; missing];
    sizes.extend_from_slice(update.shape());
    let update = super::reshape(update, &sizes)?;
    let start = dynamic_start(source, start, axes, &sizes, "slice_update")?;
    Ok(raw::slice_update_dynamic(&source.0, &update.0, &start.0, axes)?.into())
}

/// `a` with the elements where `mask` is true replaced by those of `values`, one after another.
///
/// Shapes: `mask` has the first dimensions of `a`; `values` `[k, rest..]` with as many rows as the mask has true elements, or
/// something that broadcasts. Dtypes: `mask` bool. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1i32, 2, 3])?;
/// let b = ops::masked_scatter(&a, &Array::vector(&[true, false, true])?, &Array::vector(&[8i32, 9])?)?;
/// assert_eq!(b.to_vec::<i32>()?, [8, 2, 9]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] when `mask` is not bool; [`ErrorKind::InvalidArgument`] for shapes that do not fit.
///
/// # Source
/// C++ `mlx::core::masked_scatter` (`mlx/ops.h`).
pub fn masked_scatter(a: &Array, mask: &Array, values: &Array) -> Result<Array> {
    if mask.dtype() != crate::Dtype::Bool {
        let text = format!("the mask must be bool, not {}", mask.dtype());
        return Err(Error::new(ErrorKind::Dtype, "masked_scatter", text).with_dtype(mask.dtype()));
    }
    Ok(raw::masked_scatter(&a.0, &mask.0, &values.0)?.into())
}

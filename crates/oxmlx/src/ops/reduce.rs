//! Reductions: over all elements, along one axis, or along several.

use oxmlx_sys::generated::ops as raw;

use super::check;
use crate::{Array, Result};

/// Declares the forms of a reduction: over everything, along one axis, and where MLX has it along several.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident { $all:ident, $one:ident = $axis:ident $(, $many:ident = $axes:ident)? }
       $example:literal => $result:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Over all elements. Shapes: any to a scalar. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let a = Array::vector(&", $example, ")?;")]
        #[doc = concat!("assert!(ops::", stringify!($name), "(&a)?.all_close(&Array::scalar(", $result, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// What MLX reports for an array that has no elements to choose from.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array) -> Result<Array> {
            Ok(raw::$all(&check::anew(a)?.0, false)?.into())
        }

        $(#[$doc])*
        ///
        /// Along one axis, counted from the end when negative; the axis stays with length 1 when `keepdims`. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let a = Array::vector(&", $example, ")?.reshape((1, -1))?;")]
        #[doc = concat!("let b = ops::", stringify!($one), "(&a, -1, true)?;")]
        #[doc = concat!("assert!(b.shape() == [1, 1] && b.all_close(&Array::scalar(", $result, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $one(a: &Array, axis: i32, keepdims: bool) -> Result<Array> {
            check::axis_length(a, axis, stringify!($name))?;
            Ok(raw::$axis(&check::anew(a)?.0, axis, keepdims)?.into())
        }

        $(
        #[doc = concat!("[`", stringify!($one), "`] along several axes together; all of them stay with length 1 when `keepdims`. Lazy.")]
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let a = Array::vector(&", $example, ")?.reshape((1, -1))?;")]
        #[doc = concat!("let b = ops::", stringify!($many), "(&a, &[0, 1], false)?;")]
        #[doc = concat!("assert!(b.ndim() == 0 && b.all_close(&Array::scalar(", $result, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions or named twice.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $many(a: &Array, axes: &[i32], keepdims: bool) -> Result<Array> {
            check::axes(a, axes, stringify!($name))?;
            Ok(raw::$axes(&check::anew(a)?.0, axes, keepdims)?.into())
        }
        )?
    )+};
}

reductions! {
    /// The sum. Dtypes: any; bool and narrow integers become int32 or uint32.
    sum { sum_all, sum_axis = sum_axis, sum_axes = sum_axes } "[1.0f32, 2.0, 4.0]" => "7.0f32";
    /// The product. Dtypes: any; bool and narrow integers become int32 or uint32.
    prod { prod_all, prod_axis = prod_axis, prod_axes = prod_axes } "[1.0f32, 2.0, 4.0]" => "8.0f32";
    /// The mean. Dtypes: any; integers become float32.
    mean { mean_all, mean_axis = mean_axis, mean_axes = mean_axes } "[1.0f32, 2.0, 6.0]" => "3.0f32";
    /// The median: the middle value, or the mean of the middle two. Dtypes: any real; integers become float32.
    median { median_all, median_axis = median_axis, median_axes = median_axes } "[9.0f32, 2.0, 6.0]" => "6.0f32";
    /// The largest value; NaN where there is one. Dtypes: any.
    max { max_all, max_axis = max_axis, max_axes = max_axes } "[1.0f32, 4.0, 2.0]" => "4.0f32";
    /// The smallest value; NaN where there is one. Dtypes: any.
    min { min_all, min_axis = min_axis, min_axes = min_axes } "[3.0f32, 1.0, 2.0]" => "1.0f32";
    /// Whether all values are true or not zero. Result: bool.
    all { all_all, all_axis = all_axis, all_axes = all_axes } "[true, true, false]" => "false";
    /// Whether any value is true or not zero. Result: bool.
    any { any_all, any_axis = any_axis, any_axes = any_axes } "[true, true, false]" => "true";
    /// The number of values that are not zero. Result: uint32.
    count_nonzero { count_nonzero_all, count_nonzero_axis = count_nonzero_axis, count_nonzero_axes = count_nonzero_axes }
        "[1i32, 0, -3]" => "2u32";
    /// `log(sum(exp(a)))` without overflow. Dtypes: floating point; integers become float32.
    logsumexp { logsumexp_all, logsumexp_axis = logsumexp_axis, logsumexp_axes = logsumexp_axes }
        "[1000.0f32, 1000.0]" => "1000.0f32 + std::f32::consts::LN_2";
    /// The index of the largest value, the first of equal ones. Result: uint32.
    argmax { argmax_all, argmax_axis = argmax_axis } "[1.0f32, 4.0, 2.0]" => "1u32";
    /// The index of the smallest value, the first of equal ones. Result: uint32.
    argmin { argmin_all, argmin_axis = argmin_axis } "[3.0f32, 4.0, 2.0]" => "2u32";
}

/// Declares the forms of a reduction that has degrees of freedom.
macro_rules! spread {
    ($($(#[$doc:meta])* $name:ident $all:ident, $one:ident, $many:ident => $result:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Over all elements; `ddof` is taken off their number before the division. Dtypes: any; integers become float32. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::vector(&[1.0f32, 5.0])?;
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&a, 0)?.item::<f32>()?, ", $result, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// Only what every entry into MLX can report.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array, ddof: i32) -> Result<Array> {
            Ok(raw::$all(&check::anew(a)?.0, false, ddof)?.into())
        }

        #[doc = concat!("[`", stringify!($name), "()`] along one axis, which stays with length 1 when `keepdims`. Lazy.")]
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::matrix(&[[1.0f32, 5.0]])?;
        #[doc = concat!("assert_eq!(ops::", stringify!($one), "(&a, 1, false, 0)?.to_vec::<f32>()?, [", $result, "]);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $one(a: &Array, axis: i32, keepdims: bool, ddof: i32) -> Result<Array> {
            check::axis_length(a, axis, stringify!($name))?;
            Ok(raw::$one(&check::anew(a)?.0, axis, keepdims, ddof)?.into())
        }

        #[doc = concat!("[`", stringify!($name), "()`] along several axes together. Lazy.")]
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::matrix(&[[1.0f32, 5.0]])?;
        #[doc = concat!("assert_eq!(ops::", stringify!($many), "(&a, &[0, 1], false, 0)?.item::<f32>()?, ", $result, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions or named twice.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $many(a: &Array, axes: &[i32], keepdims: bool, ddof: i32) -> Result<Array> {
            check::axes(a, axes, stringify!($name))?;
            Ok(raw::$many(&check::anew(a)?.0, axes, keepdims, ddof)?.into())
        }
    )+};
}

spread! {
    /// The variance: the mean of the squared distances from the mean.
    var var_all, var_axis, var_axes => "4.0";
    /// The standard deviation: the root of the variance.
    std std_all, std_axis, std_axes => "2.0";
}

/// The smallest and the largest value over all elements. Dtypes: any. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (low, high) = ops::minmax(&Array::vector(&[3i32, 1, 2])?)?;
/// assert_eq!((low.item::<i32>()?, high.item::<i32>()?), (1, 3));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an array without elements.
///
/// # Source
/// C++ `mlx::core::minmax` (`mlx/ops.h`).
pub fn minmax(a: &Array) -> Result<(Array, Array)> {
    let (low, high) = raw::minmax_all(&a.0, false)?;
    Ok((low.into(), high.into()))
}

/// [`minmax`] along one axis, which stays with length 1 when `keepdims`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (low, high) = ops::minmax_axis(&Array::matrix(&[[3i32, 1, 2]])?, -1, false)?;
/// assert_eq!((low.to_vec::<i32>()?, high.to_vec::<i32>()?), (vec![1], vec![3]));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::minmax` (`mlx/ops.h`).
pub fn minmax_axis(a: &Array, axis: i32, keepdims: bool) -> Result<(Array, Array)> {
    check::axis_length(a, axis, "minmax")?;
    let (low, high) = raw::minmax_axis(&a.0, axis, keepdims)?;
    Ok((low.into(), high.into()))
}

/// [`minmax`] along several axes together. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (low, high) = ops::minmax_axes(&Array::matrix(&[[3i32, 1, 2]])?, &[0, 1], false)?;
/// assert_eq!((low.item::<i32>()?, high.item::<i32>()?), (1, 3));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions or named twice.
///
/// # Source
/// C++ `mlx::core::minmax` (`mlx/ops.h`).
pub fn minmax_axes(a: &Array, axes: &[i32], keepdims: bool) -> Result<(Array, Array)> {
    check::axes(a, axes, "minmax")?;
    let (low, high) = raw::minmax_axes(&a.0, axes, keepdims)?;
    Ok((low.into(), high.into()))
}

/// The number of elements that lie along `axes`, or along all others when `inverted`, as a scalar of `dtype`.
///
/// A node rather than a number, so that shapeless compiled functions follow the shape. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, ops};
/// let a = Array::zeros::<f32>((2, 3, 4))?;
/// assert_eq!(ops::number_of_elements(&a, &[0, 2], false, Dtype::Int32)?.item::<i32>()?, 8);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions or named twice.
///
/// # Source
/// C++ `mlx::core::number_of_elements` (`mlx/ops.h`).
pub fn number_of_elements(a: &Array, axes: &[i32], inverted: bool, dtype: crate::Dtype) -> Result<Array> {
    check::axes(a, axes, "number_of_elements")?;
    Ok(raw::number_of_elements(&a.0, axes, inverted, dtype)?.into())
}

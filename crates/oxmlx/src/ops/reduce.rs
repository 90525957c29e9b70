//! Reductions: over all elements, or along one axis.

use oxmlx_sys::generated::ops as raw;

use super::index::axis_length;
use crate::{Array, Result};

macro_rules! reductions {
    ($($(#[$doc:meta])* $all:ident = $raw_all:ident, $axis:ident = $raw_axis:ident);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: any to a scalar. Lazy.
        ///
        /// # Errors
        /// What MLX reports for an array that has no elements to choose from.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($all), "` (`mlx/ops.h`).")]
        pub fn $all(a: &Array) -> Result<Array> {
            Ok(raw::$raw_all(&a.0, false)?.into())
        }

        $(#[$doc])*
        ///
        /// Along one axis, counted from the end when negative; the axis stays with length 1 when `keepdims`. Lazy.
        ///
        /// # Errors
        /// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($all), "` (`mlx/ops.h`).")]
        pub fn $axis(a: &Array, axis: i32, keepdims: bool) -> Result<Array> {
            axis_length(a, axis, stringify!($all))?;
            Ok(raw::$raw_axis(&a.0, axis, keepdims)?.into())
        }
    )+};
}

reductions! {
    /// The sum. Dtypes: any; bool and narrow integers become int32 or uint32.
    sum = sum_all, sum_axis = sum_axis;
    /// The mean. Dtypes: any; integers become float32.
    mean = mean_all, mean_axis = mean_axis;
    /// The largest value. Dtypes: any.
    max = max_all, max_axis = max_axis;
    /// The smallest value. Dtypes: any.
    min = min_all, min_axis = min_axis;
    /// The index of the largest value, the first of equal ones. Result: uint32.
    argmax = argmax_all, argmax_axis = argmax_axis;
}

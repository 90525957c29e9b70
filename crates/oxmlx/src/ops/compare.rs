//! Comparisons and selection.

use oxmlx_sys::generated::ops as raw;

use super::arithmetic::binary;
use crate::{Array, Result};

binary! {
    /// Whether `a == b`, element by element. Result: bool.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::from_slice(&[1i32, 2], 2)?, Array::scalar(2i32)?);
    /// assert_eq!(ops::equal(&a, &b)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    equal,
    /// Whether `a > b`, element by element. Result: bool.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::from_slice(&[1i32, 3], 2)?, Array::scalar(2i32)?);
    /// assert_eq!(ops::greater(&a, &b)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    greater,
    /// Whether `a >= b`, element by element. Result: bool.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::from_slice(&[1i32, 2], 2)?, Array::scalar(2i32)?);
    /// assert_eq!(ops::greater_equal(&a, &b)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    greater_equal,
    /// Whether `a < b`, element by element. Result: bool.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::from_slice(&[1i32, 2], 2)?, Array::scalar(2i32)?);
    /// assert_eq!(ops::less(&a, &b)?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    less,
}

/// `x` where `condition` is true, else `y`.
///
/// Shapes: all three broadcast. Dtypes: `condition` bool; `x` and `y` any, promoted. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let c = Array::from_slice(&[true, false], 2)?;
/// let chosen = ops::where_(&c, &Array::scalar(1i32)?, &Array::scalar(2i32)?)?;
/// assert_eq!(chosen.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::where` (`mlx/ops.h`); the underscore because `where` is a Rust keyword.
pub fn where_(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    Ok(raw::where_(&condition.0, &x.0, &y.0)?.into())
}

//! Comparisons and selection.

use oxmlx_sys::generated::ops as raw;

use super::arithmetic::binary;
use super::unary::unary;
use crate::{Array, Result};

binary! {
    /// Whether `a == b`, element by element. Result: bool.
    equal: "[1i32, 2]", "[2i32, 2]" => "[false, true]",
    /// Whether `a != b`, element by element. Result: bool.
    not_equal: "[1i32, 2]", "[2i32, 2]" => "[true, false]",
    /// Whether `a > b`, element by element. Result: bool.
    greater: "[1i32, 3]", "[2i32, 2]" => "[false, true]",
    /// Whether `a >= b`, element by element. Result: bool.
    greater_equal: "[1i32, 2]", "[2i32, 2]" => "[false, true]",
    /// Whether `a < b`, element by element. Result: bool.
    less: "[1i32, 3]", "[2i32, 2]" => "[true, false]",
    /// Whether `a <= b`, element by element. Result: bool.
    less_equal: "[2i32, 3]", "[2i32, 2]" => "[true, false]",
}

unary! {
    /// Whether the value is NaN. Result: bool.
    isnan: "[f32::NAN, 1.0]" => "[true, false]",
    /// Whether the value is an infinity. Result: bool.
    isinf: "[f32::NEG_INFINITY, 1.0]" => "[true, false]",
    /// Whether the value is neither NaN nor an infinity. Result: bool.
    isfinite: "[f32::NAN, 1.0]" => "[false, true]",
    /// Whether the value is the positive infinity. Result: bool.
    isposinf: "[f32::INFINITY, f32::NEG_INFINITY]" => "[true, false]",
    /// Whether the value is the negative infinity. Result: bool.
    isneginf: "[f32::INFINITY, f32::NEG_INFINITY]" => "[false, true]",
}

/// How near two values count as equal: `|a - b| <= absolute + relative * |b|`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Tolerance {
    relative: f64,
    absolute: f64,
    equal_nan: bool,
}

impl Default for Tolerance {
    /// MLX's own: 1e-5 relative, 1e-8 absolute, NaN equal to nothing.
    fn default() -> Self {
        Self { relative: 1e-5, absolute: 1e-8, equal_nan: false }
    }
}

impl Tolerance {
    /// This relative and this absolute tolerance.
    pub fn new(relative: f64, absolute: f64) -> Self {
        Self { relative, absolute, equal_nan: false }
    }

    /// Whether NaN equals NaN.
    pub fn equal_nan(mut self, equal_nan: bool) -> Self {
        self.equal_nan = equal_nan;
        self
    }
}

/// Whether each pair of values is equal within a tolerance. Equal infinities are.
///
/// Shapes: `a` and `b` broadcast. Dtypes: any; promoted. Result: bool. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[1.0f32, 2.0])?, Array::vector(&[1.05f32, 3.0])?);
/// assert_eq!(ops::isclose(&a, &b, ops::Tolerance::new(0.1, 0.0))?.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::isclose` (`mlx/ops.h`).
pub fn isclose(a: &Array, b: &Array, tolerance: Tolerance) -> Result<Array> {
    let Tolerance { relative, absolute, equal_nan } = tolerance;
    Ok(raw::isclose(&a.0, &b.0, relative, absolute, equal_nan)?.into())
}

/// Whether all pairs of values are equal within a tolerance: one bool. Lazy; [`Array::all_close`] gives the answer at once.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[1.0f32, 2.0])?, Array::vector(&[1.05f32, 3.0])?);
/// assert!(!ops::allclose(&a, &b, ops::Tolerance::new(0.1, 0.0))?.item::<bool>()?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::allclose` (`mlx/ops.h`).
pub fn allclose(a: &Array, b: &Array, tolerance: Tolerance) -> Result<Array> {
    let Tolerance { relative, absolute, equal_nan } = tolerance;
    Ok(raw::allclose(&a.0, &b.0, relative, absolute, equal_nan)?.into())
}

/// Whether both arrays have one shape and equal values: one bool. NaN equals NaN when `equal_nan`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1.0f32, 2.0])?;
/// assert!(ops::array_equal(&a, &a, false)?.item::<bool>()?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::array_equal` (`mlx/ops.h`).
pub fn array_equal(a: &Array, b: &Array, equal_nan: bool) -> Result<Array> {
    Ok(raw::array_equal(&a.0, &b.0, equal_nan)?.into())
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

/// The values raised to `min` where below it and lowered to `max` where above it; `None` is no bound.
///
/// Shapes: all broadcast. Dtypes: any; promoted. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[-1.0f32, 0.5, 9.0])?;
/// let clipped = ops::clip(&a, Some(&Array::scalar(0.0f32)?), Some(&Array::scalar(1.0f32)?))?;
/// assert_eq!(clipped.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when both bounds are `None` or the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::clip` (`mlx/ops.h`).
pub fn clip(a: &Array, min: Option<&Array>, max: Option<&Array>) -> Result<Array> {
    Ok(raw::clip(&a.0, min.map(|m| &m.0), max.map(|m| &m.0))?.into())
}

impl Array {
    /// Whether all values are those of `other` within MLX's default tolerance, shapes broadcast. Evaluates.
    ///
    /// # Errors
    /// As [`allclose`]; what evaluation reports.
    pub fn all_close(&self, other: &Self) -> Result<bool> {
        allclose(self, other, Tolerance::default())?.item()
    }

    /// Whether shape and values are those of `other`. Evaluates.
    ///
    /// # Errors
    /// What evaluation reports.
    pub fn array_equal(&self, other: &Self) -> Result<bool> {
        array_equal(self, other, false)?.item()
    }
}

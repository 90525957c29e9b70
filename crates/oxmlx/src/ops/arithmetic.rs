//! Element-wise arithmetic of two arrays.

use oxmlx_sys::generated::ops as raw;

use super::integer::{self, Dividend};
use crate::{Array, Result};

/// Declares element-wise functions of two arrays. Each is given its own documentation and the values of its example.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $a:literal, $b:literal => $output:literal),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: `a` and `b` broadcast against each other; the result has the common shape. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let (a, b) = (Array::vector(&", $a, ")?, Array::vector(&", $b, ")?);")]
        #[doc = concat!("assert!(ops::", stringify!($name), "(&a, &b)?.all_close(&Array::vector(&", $output, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array, b: &Array) -> Result<Array> {
            Ok(raw::$name(&a.0, &b.0)?.into())
        }
    )+};
}

pub(super) use binary;

binary! {
    /// The sum `a + b`. Dtypes: any; promoted. Integers wrap.
    add: "[1.0f32, 2.0]", "[10.0f32, 20.0]" => "[11.0f32, 22.0]",
    /// The difference `a - b`. Dtypes: any; promoted. Integers wrap.
    subtract: "[1.0f32, 2.0]", "[10.0f32, 20.0]" => "[-9.0f32, -18.0]",
    /// The product `a * b`, element by element. Dtypes: any; promoted. Integers wrap.
    multiply: "[3i32, -2]", "[3i32, 4]" => "[9i32, -8]",
    /// The quotient `a / b`. Dtypes: any; integers become float32.
    divide: "[1i32, 3]", "[2i32, 2]" => "[0.5f32, 1.5]",
    /// The larger of `a` and `b`; NaN where either is NaN. Dtypes: any; promoted.
    maximum: "[1i32, 5]", "[3i32, 3]" => "[3i32, 5]",
    /// The smaller of `a` and `b`; NaN where either is NaN. Dtypes: any; promoted.
    minimum: "[1i32, 5]", "[3i32, 3]" => "[1i32, 3]",
    /// The angle of the point `(b, a)`, in radians from `-pi` to `pi`. Dtypes: floating point; integers become float32.
    arctan2: "[1.0f32, 0.0]", "[1.0f32, -1.0]" => "[std::f32::consts::FRAC_PI_4, std::f32::consts::PI]",
    /// `log(exp(a) + exp(b))` without overflow. Dtypes: floating point; integers become float32.
    logaddexp: "[0.0f32, 1000.0]", "[0.0f32, 0.0]" => "[std::f32::consts::LN_2, 1000.0]",
    /// The bits that are set in both; logical and for bool. Dtypes: integers and bool; promoted.
    bitwise_and: "[12i32, 7]", "[10i32, 8]" => "[8i32, 0]",
    /// The bits that are set in either; logical or for bool. Dtypes: integers and bool; promoted.
    bitwise_or: "[12i32, 7]", "[10i32, 8]" => "[14i32, 15]",
    /// The bits that are set in one of both; logical exclusive or for bool. Dtypes: integers and bool; promoted.
    bitwise_xor: "[12i32, 7]", "[10i32, 8]" => "[6i32, 15]",
    /// Whether both are true or not zero. Result: bool.
    logical_and: "[true, true]", "[true, false]" => "[true, false]",
    /// Whether either is true or not zero. Result: bool.
    logical_or: "[true, false]", "[false, false]" => "[true, false]",
    /// Whether one of both is true or not zero, and not the other. Result: bool.
    logical_xor: "[true, true]", "[true, false]" => "[false, true]",
}

/// `a` to the power of `b`. Dtypes: any; promoted.
///
/// Shapes: `a` and `b` broadcast against each other. Lazy. Integers wrap; an integer to a **negative power is 0**, but for 1 and -1.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[2i32, 2, -1])?, Array::vector(&[10i32, -1, -3])?);
/// assert_eq!(ops::power(&a, &b)?.to_vec::<i32>()?, [1024, 0, -1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::power` (`mlx/ops.h`); differs: a negative power of an integer is undefined there.
pub fn power(a: &Array, b: &Array) -> Result<Array> {
    match Dividend::of(a, b)? {
        Some(dividend) if dividend.signed && integer::constant(b)?.is_none_or(|b| b < 0) => {
            integer::power(a, b, dividend.dtype)
        }
        _ => Ok(raw::power(&a.0, &b.0)?.into()),
    }
}

/// The whole quotient of `a / b`: rounded down for floats; for integers as MLX does, towards zero.
///
/// Shapes: `a` and `b` broadcast against each other. Dtypes: any real; promoted. Lazy. An integer over **zero is 0**, and
/// the smallest integer over -1 wraps to itself.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[7i32, 7, i32::MIN])?, Array::vector(&[2i32, 0, -1])?);
/// assert_eq!(ops::floor_divide(&a, &b)?.to_vec::<i32>()?, [3, 0, i32::MIN]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::floor_divide` (`mlx/ops.h`); differs: those integer quotients stop the process there.
pub fn floor_divide(a: &Array, b: &Array) -> Result<Array> {
    match Dividend::of(a, b)? {
        Some(dividend) if !integer::divides_safely(b)? => integer::quotient(a, b, dividend),
        _ => Ok(raw::floor_divide(&a.0, &b.0)?.into()),
    }
}

/// What is left of `a` after whole multiples of `b`, with the sign of `b`.
///
/// Shapes: `a` and `b` broadcast against each other. Dtypes: any real; promoted. Lazy. An integer modulo **zero is 0**, and so is
/// one modulo -1.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[-7i32, 7, i32::MIN])?, Array::vector(&[3i32, 0, -1])?);
/// assert_eq!(ops::remainder(&a, &b)?.to_vec::<i32>()?, [2, 0, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::remainder` (`mlx/ops.h`); differs: those integer remainders stop the process there.
pub fn remainder(a: &Array, b: &Array) -> Result<Array> {
    match Dividend::of(a, b)? {
        Some(_) if !integer::divides_safely(b)? => integer::remainder(a, b),
        _ => Ok(raw::remainder(&a.0, &b.0)?.into()),
    }
}

/// [`floor_divide`] and [`remainder`] together. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (q, r) = ops::divmod(&Array::scalar(7i32)?, &Array::scalar(2i32)?)?;
/// assert_eq!((q.item::<i32>()?, r.item::<i32>()?), (3, 1));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast.
///
/// # Source
/// C++ `mlx::core::divmod` (`mlx/ops.h`); differs: an integer over zero, and the smallest over -1, are defined.
pub fn divmod(a: &Array, b: &Array) -> Result<(Array, Array)> {
    if Dividend::of(a, b)?.is_some() && !integer::divides_safely(b)? {
        return Ok((floor_divide(a, b)?, remainder(a, b)?));
    }
    let [quotient, rest] = super::check::exactly(raw::divmod(&a.0, &b.0)?, "divmod")?;
    Ok((quotient, rest))
}

/// `a` with its bits moved up by `b`, zeros moving in. The distance is taken modulo the width, as by Rust's `wrapping_shl`.
///
/// Shapes: `a` and `b` broadcast against each other. Dtypes: integers; promoted. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[1i32, 1])?, Array::vector(&[4i32, 33])?);
/// assert_eq!(ops::left_shift(&a, &b)?.to_vec::<i32>()?, [16, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast or a dtype is no integer.
///
/// # Source
/// C++ `mlx::core::left_shift` (`mlx/ops.h`); differs: a distance outside the width is undefined there.
pub fn left_shift(a: &Array, b: &Array) -> Result<Array> {
    Ok(raw::left_shift(&a.0, &integer::distance(a, b)?.0)?.into())
}

/// `a` with its bits moved down by `b`; the sign moves in for signed integers. The distance is taken modulo the width, as by
/// Rust's `wrapping_shr`.
///
/// Shapes: `a` and `b` broadcast against each other. Dtypes: integers; promoted. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[16i32, -16])?, Array::vector(&[2i32, 2])?);
/// assert_eq!(ops::right_shift(&a, &b)?.to_vec::<i32>()?, [4, -4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the shapes do not broadcast or a dtype is no integer.
///
/// # Source
/// C++ `mlx::core::right_shift` (`mlx/ops.h`); differs: a distance outside the width is undefined there.
pub fn right_shift(a: &Array, b: &Array) -> Result<Array> {
    Ok(raw::right_shift(&a.0, &integer::distance(a, b)?.0)?.into())
}

//! Element-wise functions of one array.

use oxmlx_sys::generated::ops as raw;

use super::check::axis_length;
use crate::{Array, Error, ErrorKind, Result, cpu};

/// Declares element-wise functions of one array. Each is given its own documentation and the values of its example.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $input:literal => $output:literal),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: the result has that of `a`. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let a = Array::vector(&", $input, ")?;")]
        #[doc = concat!("assert!(ops::", stringify!($name), "(&a)?.all_close(&Array::vector(&", $output, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// What MLX reports for a dtype that the function is not defined for.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array) -> Result<Array> {
            Ok(raw::$name(&a.0)?.into())
        }
    )+};
}

pub(super) use unary;

unary! {
    /// The absolute value; of a complex number its magnitude, as float32. Dtypes: any.
    abs: "[-2.0f32, 3.0]" => "[2.0f32, 3.0]",
    /// The values as they are: `+a`. Dtypes: any.
    positive: "[-2i32, 3]" => "[-2i32, 3]",
    /// The negated value; unsigned integers wrap. Dtypes: any but bool.
    negative: "[-2i32, 3]" => "[2i32, -3]",
    /// -1, 0 or 1 by the value's sign; of a complex number the number over its magnitude. Dtypes: any.
    sign: "[-2.5f32, 0.0, 3.0]" => "[-1.0f32, 0.0, 1.0]",
    /// `1 / a`. Dtypes: floating point and complex; integers become float32.
    reciprocal: "[4.0f32, -0.5]" => "[0.25f32, -2.0]",
    /// The largest whole number that is not above the value. Dtypes: any real; integers stay as they are.
    floor: "[1.7f32, -1.2]" => "[1.0f32, -2.0]",
    /// The smallest whole number that is not below the value. Dtypes: any real; integers stay as they are.
    ceil: "[1.2f32, -1.7]" => "[2.0f32, -1.0]",
    /// The whole part, rounded towards zero. Dtypes: any real; integers stay as they are.
    trunc: "[1.7f32, -1.7]" => "[1.0f32, -1.0]",
    /// The square. Dtypes: any.
    square: "[3i32, -2]" => "[9i32, 4]",
    /// The square root; NaN below zero. Dtypes: floating point and complex; integers become float32.
    sqrt: "[4.0f32, 2.25]" => "[2.0f32, 1.5]",
    /// The reciprocal of the square root. Dtypes: floating point and complex; integers become float32.
    rsqrt: "[4.0f32, 0.25]" => "[0.5f32, 2.0]",
    /// The exponential. Dtypes: floating point and complex; integers become float32.
    exp: "[0.0f32, 1.0]" => "[1.0f32, std::f32::consts::E]",
    /// `exp(a) - 1`, exact near zero. Dtypes: floating point; integers become float32.
    expm1: "[0.0f32, 1e-6]" => "[0.0f32, 1e-6]",
    /// The natural logarithm. Dtypes: floating point and complex; integers become float32.
    log: "[1.0f32, std::f32::consts::E]" => "[0.0f32, 1.0]",
    /// The logarithm to base 2. Dtypes: floating point and complex; integers become float32.
    log2: "[8.0f32, 0.5]" => "[3.0f32, -1.0]",
    /// The logarithm to base 10. Dtypes: floating point and complex; integers become float32.
    log10: "[100.0f32, 0.1]" => "[2.0f32, -1.0]",
    /// `log(1 + a)`, exact near zero. Dtypes: floating point and complex; integers become float32.
    log1p: "[0.0f32, 1e-6]" => "[0.0f32, 1e-6]",
    /// `1 / (1 + exp(-a))`. Dtypes: floating point; integers become float32.
    sigmoid: "[0.0f32, 100.0]" => "[0.5f32, 1.0]",
    /// The error function. Dtypes: floating point; integers become float32.
    erf: "[0.0f32, 1.0]" => "[0.0f32, 0.842_700_8]",
    /// The inverse of the error function; infinite at -1 and 1, NaN beyond. Dtypes: floating point; integers become float32.
    erfinv: "[0.0f32, 0.842_700_8]" => "[0.0f32, 1.0]",
    /// The sine. Dtypes: floating point and complex; integers become float32.
    sin: "[0.0f32, std::f32::consts::FRAC_PI_2]" => "[0.0f32, 1.0]",
    /// The cosine. Dtypes: floating point and complex; integers become float32.
    cos: "[0.0f32, std::f32::consts::PI]" => "[1.0f32, -1.0]",
    /// The tangent. Dtypes: floating point and complex; integers become float32.
    tan: "[0.0f32, std::f32::consts::FRAC_PI_4]" => "[0.0f32, 1.0]",
    /// The inverse sine, NaN outside `[-1, 1]`. Dtypes: floating point and complex; integers become float32.
    arcsin: "[0.0f32, 1.0]" => "[0.0f32, std::f32::consts::FRAC_PI_2]",
    /// The inverse cosine, NaN outside `[-1, 1]`. Dtypes: floating point and complex; integers become float32.
    arccos: "[1.0f32, -1.0]" => "[0.0f32, std::f32::consts::PI]",
    /// The inverse tangent. Dtypes: floating point and complex; integers become float32.
    arctan: "[0.0f32, 1.0]" => "[0.0f32, std::f32::consts::FRAC_PI_4]",
    /// The hyperbolic sine. Dtypes: floating point and complex; integers become float32.
    sinh: "[0.0f32, 1.0]" => "[0.0f32, 1.175_201_2]",
    /// The hyperbolic cosine. Dtypes: floating point and complex; integers become float32.
    cosh: "[0.0f32, 1.0]" => "[1.0f32, 1.543_080_6]",
    /// The hyperbolic tangent. Dtypes: floating point and complex; integers become float32.
    tanh: "[0.0f32, 1.0]" => "[0.0f32, 0.761_594_2]",
    /// The inverse hyperbolic sine. Dtypes: floating point; integers become float32.
    arcsinh: "[0.0f32, 1.175_201_2]" => "[0.0f32, 1.0]",
    /// The inverse hyperbolic cosine, NaN below 1. Dtypes: floating point; integers become float32.
    arccosh: "[1.0f32, 1.543_080_6]" => "[0.0f32, 1.0]",
    /// The inverse hyperbolic tangent, NaN outside `[-1, 1]`. Dtypes: floating point; integers become float32.
    arctanh: "[0.0f32, 0.761_594_2]" => "[0.0f32, 1.0]",
    /// Radians as degrees. Dtypes: floating point; integers become float32.
    degrees: "[0.0f32, std::f32::consts::PI]" => "[0.0f32, 180.0]",
    /// Degrees as radians. Dtypes: floating point; integers become float32.
    radians: "[0.0f32, 180.0]" => "[0.0f32, std::f32::consts::PI]",
    /// The complex conjugate. Dtypes: any; real values stay as they are.
    conjugate: "[oxmlx::Complex32::new(1.0, 2.0)]" => "[oxmlx::Complex32::new(1.0, -2.0)]",
    /// The real part. Dtypes: any; real values stay as they are.
    real: "[oxmlx::Complex32::new(1.0, 2.0)]" => "[1.0f32]",
    /// The imaginary part; zeros for real values. Dtypes: any.
    imag: "[oxmlx::Complex32::new(1.0, 2.0)]" => "[2.0f32]",
    /// Every bit turned over; logical not for bool. Dtypes: integers and bool.
    bitwise_invert: "[0i32, -2]" => "[-1i32, 1]",
    /// Whether the value is false or zero. Result: bool.
    logical_not: "[true, false]" => "[false, true]",
    /// The values with no gradient through them. Dtypes: any.
    stop_gradient: "[1.0f32, 2.0]" => "[1.0f32, 2.0]",
    /// Float values as the bits of 8-bit floats (E4M3), in uint8. Dtypes: floating point.
    to_fp8: "[1.0f32, -2.0]" => "[56u8, 192]",
}

/// The values rounded to `decimals` places, halves to the even neighbour; left of the point when negative.
///
/// Shapes: the result has that of `a`. Dtypes: any; integers stay as they are. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1.25f32, 2.5])?;
/// assert!(ops::round(&a, 0)?.all_close(&Array::vector(&[1.0f32, 2.0])?)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::round` (`mlx/ops.h`).
pub fn round(a: &Array, decimals: i32) -> Result<Array> {
    Ok(raw::round(&a.0, decimals)?.into())
}

/// The bits of 8-bit floats (E4M3) as floats of `dtype`. Dtypes: `x` uint8. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, ops};
/// let bits = Array::vector(&[56u8, 192])?;
/// assert_eq!(ops::from_fp8(&bits, Dtype::Float32)?.to_vec::<f32>()?, [1.0, -2.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] when `x` is not uint8 or `dtype` no floating point type.
///
/// # Source
/// C++ `mlx::core::from_fp8` (`mlx/ops.h`).
pub fn from_fp8(x: &Array, dtype: crate::Dtype) -> Result<Array> {
    if x.dtype() != crate::Dtype::Uint8 || !dtype.is_floating() {
        let text = format!("{} to {dtype}: it takes uint8 to a floating point type", x.dtype());
        return Err(Error::new(ErrorKind::Dtype, "from_fp8", text).with_dtype(x.dtype()).with_dtype(dtype));
    }
    Ok(raw::from_fp8(&x.0, dtype)?.into())
}

/// The Walsh-Hadamard transform along the last axis, times `scale` (`1 / sqrt(n)` when `None`).
///
/// Shapes: `[.., n]` to the same, with `n` a power of two times 1, 12, 20 or 28. Dtypes: floating point; integers become float32.
/// Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1.0f32, 2.0])?;
/// assert_eq!(ops::hadamard_transform(&a, Some(1.0))?.to_vec::<f32>()?, [3.0, -1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another length; [`ErrorKind::Shape`] for a scalar.
///
/// # Source
/// C++ `mlx::core::hadamard_transform` (`mlx/ops.h`).
pub fn hadamard_transform(a: &Array, scale: Option<f32>) -> Result<Array> {
    if a.dim(-1).unwrap_or(0) == 0 {
        let text = format!("shape {:?} has no last axis to transform", a.shape());
        return Err(Error::new(ErrorKind::Shape, "hadamard_transform", text).with_shape(a.shape()));
    }
    // MLX says so when the node is evaluated, where it would hit what else is evaluated.
    let n = a.dim(-1).unwrap_or(0);
    let (odd, twos) = (n >> n.trailing_zeros(), n.trailing_zeros());
    if odd != 1 && (!matches!(odd, 3 | 5 | 7) || twos < 2) {
        let text = format!("an axis of {n}: it must be a power of two times 1, 12, 20 or 28");
        return Err(Error::new(ErrorKind::InvalidArgument, "hadamard_transform", text).with_shape(a.shape()));
    }
    Ok(raw::hadamard_transform(&a.0, scale)?.into())
}

/// `exp(a)` normalised to sum 1 along `axis`. Dtypes: floating point; in float32 inside when `precise`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::from_slice(&[0.0f32, 0.0], 2)?;
/// assert_eq!(ops::softmax(&a, -1, true)?.to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::softmax` (`mlx/ops.h`).
pub fn softmax(a: &Array, axis: i32, precise: bool) -> Result<Array> {
    axis_length(a, axis, "softmax")?;
    cpu::softmax(a, axis, precise).unwrap_or_else(|| mlx_softmax(a, axis, precise))
}

/// MLX's own node.
pub(crate) fn mlx_softmax(a: &Array, axis: i32, precise: bool) -> Result<Array> {
    Ok(raw::softmax_axes(&a.0, &[axis], precise)?.into())
}

/// `exp(a)` normalised to sum 1 over several axes together. See [`softmax`].
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 2))?;
/// assert_eq!(ops::softmax_axes(&a, &[0, 1], false)?.to_vec::<f32>()?, [0.25; 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::softmax` (`mlx/ops.h`).
pub fn softmax_axes(a: &Array, axes: &[i32], precise: bool) -> Result<Array> {
    super::check::axes(a, axes, "softmax")?;
    Ok(raw::softmax_axes(&a.0, axes, precise)?.into())
}

/// `exp(a)` normalised to sum 1 over all elements. See [`softmax`].
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::zeros::<f32>((2, 2))?;
/// assert_eq!(ops::softmax_all(&a, false)?.to_vec::<f32>()?, [0.25; 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::softmax` (`mlx/ops.h`).
pub fn softmax_all(a: &Array, precise: bool) -> Result<Array> {
    Ok(raw::softmax_all(&a.0, precise)?.into())
}

/// The values with NaN and the infinities replaced; an infinity without a replacement becomes the dtype's largest or smallest
/// finite value. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[f32::NAN, f32::INFINITY, 1.0])?;
/// assert_eq!(ops::nan_to_num(&a, 0.0, Some(9.0), None)?.to_vec::<f32>()?, [0.0, 9.0, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::nan_to_num` (`mlx/ops.h`).
pub fn nan_to_num(a: &Array, nan: f32, posinf: Option<f32>, neginf: Option<f32>) -> Result<Array> {
    Ok(raw::nan_to_num(&a.0, nan, posinf, neginf)?.into())
}

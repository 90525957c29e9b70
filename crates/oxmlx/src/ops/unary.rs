//! Element-wise functions of one array.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Result};

/// Declares element-wise functions of one array. Each is given its own documentation.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: the result has that of `a`. Lazy.
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

unary! {
    /// The absolute value. Dtypes: any.
    abs,
    /// The negated value. Dtypes: any but bool.
    negative,
    /// The exponential. Dtypes: floating point; integers become float32.
    exp,
    /// The natural logarithm. Dtypes: floating point; integers become float32.
    log,
    /// The square root. Dtypes: floating point; integers become float32.
    sqrt,
    /// The reciprocal of the square root. Dtypes: floating point; integers become float32.
    rsqrt,
    /// The square. Dtypes: any.
    square,
    /// `1 / (1 + exp(-a))`. Dtypes: floating point; integers become float32.
    sigmoid,
    /// The cosine. Dtypes: floating point; integers become float32.
    cos,
    /// The sine. Dtypes: floating point; integers become float32.
    sin,
    /// The hyperbolic tangent. Dtypes: floating point; integers become float32.
    tanh,
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
    super::index::axis_length(a, axis, "softmax")?;
    Ok(raw::softmax_axes(&a.0, &[axis], precise)?.into())
}

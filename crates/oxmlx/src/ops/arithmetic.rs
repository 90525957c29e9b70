//! Element-wise operations of two arrays.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Result};

/// Declares element-wise functions of two arrays. Each is given its own documentation.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: `a` and `b` broadcast against each other; the result has the common shape. Lazy.
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
    /// The sum `a + b`. Dtypes: any; promoted.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let a = Array::from_slice(&[1.0f32, 2.0], 2)?;
    /// assert_eq!(ops::add(&a, &Array::scalar(10.0f32)?)?.to_vec::<f32>()?, [11.0, 12.0]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    add,
    /// The difference `a - b`. Dtypes: any; promoted.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let a = Array::from_slice(&[1.0f32, 2.0], 2)?;
    /// assert_eq!(ops::subtract(&a, &a)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    subtract,
    /// The product `a * b`, element by element. Dtypes: any; promoted.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let a = Array::from_slice(&[3i32, -2], 2)?;
    /// assert_eq!(ops::multiply(&a, &a)?.to_vec::<i32>()?, [9, 4]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    multiply,
    /// The quotient `a / b`. Dtypes: any; integers become float32.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::scalar(1i32)?, Array::scalar(2i32)?);
    /// assert_eq!(ops::divide(&a, &b)?.item::<f32>()?, 0.5);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    divide,
    /// The larger of `a` and `b`; NaN where either is NaN. Dtypes: any; promoted.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::from_slice(&[1i32, 5], 2)?, Array::scalar(3i32)?);
    /// assert_eq!(ops::maximum(&a, &b)?.to_vec::<i32>()?, [3, 5]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    maximum,
    /// The smaller of `a` and `b`; NaN where either is NaN. Dtypes: any; promoted.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::from_slice(&[1i32, 5], 2)?, Array::scalar(3i32)?);
    /// assert_eq!(ops::minimum(&a, &b)?.to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    minimum,
    /// `a` to the power of `b`. Dtypes: any; promoted.
    ///
    /// ```
    /// use oxmlx::{Array, ops};
    /// let (a, b) = (Array::scalar(2.0f32)?, Array::scalar(10.0f32)?);
    /// assert_eq!(ops::power(&a, &b)?.item::<f32>()?, 1024.0);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    power,
}

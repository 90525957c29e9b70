//! Running sums, products and extremes, and differences of neighbours.

use oxmlx_sys::generated::ops as raw;

use super::check;
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// From which end a running value is taken, and whether it contains the element it stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Scan {
    reverse: bool,
    inclusive: bool,
    dtype: Option<Dtype>,
}

impl Default for Scan {
    /// From the start, inclusive, in the dtype that MLX chooses.
    fn default() -> Self {
        Self { reverse: false, inclusive: true, dtype: None }
    }
}

impl Scan {
    /// From the start, inclusive.
    pub fn new() -> Self {
        Self::default()
    }

    /// From the end towards the start.
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Without the element it stands at: the first value is that of nothing (0, 1 or an infinity).
    pub fn exclusive(mut self) -> Self {
        self.inclusive = false;
        self
    }

    /// The dtype of a running sum or product. The others keep theirs and do not look at it.
    pub fn dtype(mut self, dtype: Dtype) -> Self {
        self.dtype = Some(dtype);
        self
    }
}

/// Declares the two forms of a running value.
macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident = $all:ident, $axis:ident ($($dtype:ident)?) $input:literal => $output:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Along one axis; the shape stays. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let a = Array::vector(&", $input, ")?;")]
        #[doc = concat!("let b = ops::", stringify!($axis), "(&a, 0, ops::Scan::new())?;")]
        #[doc = concat!("assert!(b.all_close(&Array::vector(&", $output, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $axis(a: &Array, axis: i32, scan: Scan) -> Result<Array> {
            check::axis_length(a, axis, stringify!($name))?;
            Ok(raw::$axis(&a.0, axis, scan.reverse, scan.inclusive $(, scan.$dtype)?)?.into())
        }

        $(#[$doc])*
        ///
        /// Over all elements in row-major order: a vector. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let a = Array::vector(&", $input, ")?.reshape((1, -1))?;")]
        #[doc = concat!("let b = ops::", stringify!($name), "(&a, ops::Scan::new())?;")]
        #[doc = concat!("assert!(b.ndim() == 1 && b.all_close(&Array::vector(&", $output, ")?)?);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// Only what every entry into MLX can report.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array, scan: Scan) -> Result<Array> {
            Ok(raw::$all(&a.0, scan.reverse, scan.inclusive $(, scan.$dtype)?)?.into())
        }
    )+};
}

scans! {
    /// The running sum. Dtypes: any; bool and narrow integers become int32 or uint32.
    cumsum = cumsum_all, cumsum_axis (dtype) "[1i32, 2, 3]" => "[1i32, 3, 6]";
    /// The running product. Dtypes: any; bool and narrow integers become int32 or uint32.
    cumprod = cumprod_all, cumprod_axis (dtype) "[1i32, 2, 3]" => "[1i32, 2, 6]";
    /// The running maximum. Dtypes: any.
    cummax = cummax_all, cummax_axis () "[1i32, 3, 2]" => "[1i32, 3, 3]";
    /// The running minimum. Dtypes: any.
    cummin = cummin_all, cummin_axis () "[2i32, 1, 3]" => "[2i32, 1, 1]";
    /// The running `log(sum(exp(a)))`. Dtypes: floating point; integers become float32.
    logcumsumexp = logcumsumexp_all, logcumsumexp_axis () "[0.0f32, 0.0]" => "[0.0f32, std::f32::consts::LN_2]";
}

/// The differences of neighbours along `axis`, taken `n` times: each time the axis is one shorter.
///
/// Dtypes: any; for bool whether neighbours differ. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::diff(&Array::vector(&[1i32, 4, 9])?, 1, -1)?.to_vec::<i32>()?, [3, 5]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] for a negative `n`.
///
/// # Source
/// C++ `mlx::core::diff` (`mlx/ops.h`).
pub fn diff(a: &Array, n: i32, axis: i32) -> Result<Array> {
    let length = check::axis_length(a, axis, "diff")?;
    if n < 0 {
        return Err(Error::new(ErrorKind::InvalidArgument, "diff", format!("{n} times: it must not be negative")));
    }
    // After `length` times nothing is left to take; more would only loop.
    Ok(raw::diff(&a.0, n.min(length), axis)?.into())
}

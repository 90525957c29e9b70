//! Arrays made from nothing: constants, ranges, windows, triangles.

use oxmlx_sys::generated::ops as raw;
pub use oxmlx_sys::types::Indexing;

use super::check;
use crate::shape::IntoShape;
use crate::{Array, Dtype, Element, Error, ErrorKind, Result};

fn checked<'s>(op: &'static str, shape: impl IntoShape<'s>) -> Result<std::borrow::Cow<'s, [i32]>> {
    let shape = shape.into_shape();
    check::possible(&shape, op)?;
    Ok(shape)
}

/// An array of zeros. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::zeros((2, 2), Dtype::Int32)?.to_vec::<i32>()?, [0; 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative dimension.
///
/// # Source
/// C++ `mlx::core::zeros` (`mlx/ops.h`).
pub fn zeros<'s>(shape: impl IntoShape<'s>, dtype: Dtype) -> Result<Array> {
    Ok(raw::zeros(&checked("zeros", shape)?, dtype)?.into())
}

/// An array of ones. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::ones(3, Dtype::Float32)?.to_vec::<f32>()?, [1.0; 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative dimension.
///
/// # Source
/// C++ `mlx::core::ones` (`mlx/ops.h`).
pub fn ones<'s>(shape: impl IntoShape<'s>, dtype: Dtype) -> Result<Array> {
    Ok(raw::ones(&checked("ones", shape)?, dtype)?.into())
}

/// An array of `shape` filled with `values`, which broadcast to it. Dtype: that of `values`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::full(2, &Array::scalar(7i32)?)?.to_vec::<i32>()?, [7, 7]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative dimension; [`ErrorKind::InvalidArgument`] when `values` does not broadcast to the shape.
///
/// # Source
/// C++ `mlx::core::full` (`mlx/ops.h`).
pub fn full<'s>(shape: impl IntoShape<'s>, values: &Array) -> Result<Array> {
    Ok(raw::full(&checked("full", shape)?, &values.0)?.into())
}

/// An array with the shape and dtype of `a`, filled with `values`, which broadcast to it. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::vector(&[1.5f32, 2.5])?;
/// assert_eq!(ops::full_like(&a, &Array::scalar(7i32)?)?.to_vec::<f32>()?, [7.0, 7.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when `values` does not broadcast to the shape.
///
/// # Source
/// C++ `mlx::core::full_like` (`mlx/ops.h`).
pub fn full_like(a: &Array, values: &Array) -> Result<Array> {
    Ok(raw::full_like(&a.0, &values.0)?.into())
}

/// An array of zeros with the shape and dtype of `a`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::zeros_like(&Array::vector(&[1i32, 2])?)?.to_vec::<i32>()?, [0, 0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::zeros_like` (`mlx/ops.h`).
pub fn zeros_like(a: &Array) -> Result<Array> {
    Ok(raw::zeros_like(&a.0)?.into())
}

/// An array of ones with the shape and dtype of `a`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::ones_like(&Array::vector(&[5i32, 2])?)?.to_vec::<i32>()?, [1, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::ones_like` (`mlx/ops.h`).
pub fn ones_like(a: &Array) -> Result<Array> {
    Ok(raw::ones_like(&a.0)?.into())
}

/// The numbers from `start` up to, and without, `stop`, by `step`. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::arange(0.0, 5.0, 2.0, Dtype::Int32)?.to_vec::<i32>()?, [0, 2, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when a bound or the step is not finite, the step is zero, or the range is too long.
///
/// # Source
/// C++ `mlx::core::arange` (`mlx/ops.h`).
pub fn arange(start: f64, stop: f64, step: f64, dtype: Dtype) -> Result<Array> {
    if !(start.is_finite() && stop.is_finite() && step.is_finite()) || step == 0.0 {
        let text = format!("start {start}, stop {stop}, step {step}: all must be finite and the step not zero");
        return Err(Error::new(ErrorKind::InvalidArgument, "arange", text));
    }
    if ((stop - start) / step).ceil() > f64::from(i32::MAX) {
        let text = format!("start {start}, stop {stop}, step {step}: that is more than MLX counts");
        return Err(Error::new(ErrorKind::InvalidArgument, "arange", text));
    }
    Ok(raw::arange(start, stop, step, dtype)?.into())
}

/// The int32 numbers from `start` up to, and without, `stop`, by `step`. Lazy.
///
/// ```
/// use oxmlx::ops;
/// assert_eq!(ops::arange_i32(5, 0, -2)?.to_vec::<i32>()?, [5, 3, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the step is zero or the range too long.
///
/// # Source
/// C++ `mlx::core::arange(int, int, int)` (`mlx/ops.h`).
pub fn arange_i32(start: i32, stop: i32, step: i32) -> Result<Array> {
    arange(start.into(), stop.into(), step.into(), Dtype::Int32)
}

/// `num` numbers with equal distances from `start` to `stop`; `stop` is the last of them when `endpoint`. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::linspace(0.0, 1.0, 3, true, Dtype::Float32)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a negative `num`.
///
/// # Source
/// C++ `mlx::core::linspace` (`mlx/ops.h`).
pub fn linspace(start: f64, stop: f64, num: i32, endpoint: bool, dtype: Dtype) -> Result<Array> {
    Ok(raw::linspace(start, stop, num, endpoint, dtype)?.into())
}

/// Ones on the `k`th diagonal of an `n` by `m` matrix, zeros elsewhere; diagonals above the main one are positive. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::eye(2, 3, 1, Dtype::Int32)?.to_vec::<i32>()?, [0, 1, 0, 0, 0, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative number of rows or columns.
///
/// # Source
/// C++ `mlx::core::eye` (`mlx/ops.h`).
pub fn eye(n: i32, m: i32, k: i32, dtype: Dtype) -> Result<Array> {
    check::possible(&[n, m], "eye")?;
    if k >= m || k <= -n {
        return zeros((n, m), dtype);
    }
    let (real, complex) = real_part(dtype);
    let made = Array::from(raw::eye(n, m, k, real)?);
    if complex { made.astype(dtype) } else { Ok(made) }
}

/// The identity matrix of `n` rows. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::identity(2, Dtype::Float32)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative number of rows.
///
/// # Source
/// C++ `mlx::core::identity` (`mlx/ops.h`).
pub fn identity(n: i32, dtype: Dtype) -> Result<Array> {
    check::possible(&[n, n], "identity")?;
    let (real, complex) = real_part(dtype);
    let made = Array::from(raw::identity(n, real)?);
    if complex { made.astype(dtype) } else { Ok(made) }
}

/// The dtype to make a diagonal in, and whether it becomes complex then: MLX scatters no complex numbers on a GPU.
fn real_part(dtype: Dtype) -> (Dtype, bool) {
    if dtype == Dtype::Complex64 { (Dtype::Float32, true) } else { (dtype, false) }
}

/// Ones on and below the `k`th diagonal of an `n` by `m` matrix, zeros above it. Lazy.
///
/// ```
/// use oxmlx::{Dtype, ops};
/// assert_eq!(ops::tri(2, 2, 0, Dtype::Int32)?.to_vec::<i32>()?, [1, 0, 1, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative number of rows or columns, or `m - k` over `i32::MAX`.
///
/// # Source
/// C++ `mlx::core::tri` (`mlx/ops.h`).
pub fn tri(n: i32, m: i32, k: i32, dtype: Dtype) -> Result<Array> {
    check::possible(&[n, m], "tri")?;
    // MLX counts up to the other dimension.
    if n == 0 || m == 0 {
        return zeros((n, m), dtype);
    }
    let k = k.clamp(-n, m);
    countable(m, k, "tri")?;
    Ok(raw::tri(n, m, k, dtype)?.into())
}

/// MLX counts up to one past `m - k`, in 32 bits.
fn countable(m: i32, k: i32, op: &'static str) -> Result<()> {
    if i64::from(m) - i64::from(k) < i64::from(i32::MAX) {
        return Ok(());
    }
    let text = format!("{m} columns and a diagonal {k} below are too many to count");
    Err(Error::new(ErrorKind::Shape, op, text))
}

/// Declares the functions that keep one triangle.
macro_rules! triangles {
    ($($(#[$doc:meta])* $name:ident => $output:literal),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Shapes: `[.., n, m]` to the same. Dtypes: any. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        /// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&a, 0)?.to_vec::<i32>()?, ", $output, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::InvalidArgument`] for fewer than two dimensions; [`ErrorKind::Shape`] for `m - k` over `i32::MAX`.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(a: &Array, k: i32) -> Result<Array> {
            let (n, m) = (a.dim(-2).unwrap_or(0), a.dim(-1).unwrap_or(0));
            // Beyond one step outside the matrix nothing changes, and MLX computes k - 1.
            let k = k.clamp((-n).saturating_sub(1), m.saturating_add(1));
            countable(m, k, stringify!($name))?;
            Ok(raw::$name(&a.0, k)?.into())
        }
    )+};
}

triangles! {
    /// The values on and below the `k`th diagonal, zeros above it.
    tril => "[1, 0, 3, 4]",
    /// The values on and above the `k`th diagonal, zeros below it.
    triu => "[1, 2, 0, 4]",
}

/// The `k`th diagonal of a matrix, or a matrix whose `k`th diagonal is a vector and the rest zero. Dtypes: any. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let d = ops::diag(&Array::vector(&[1i32, 2])?, 0)?;
/// assert_eq!(d.to_vec::<i32>()?, [1, 0, 0, 2]);
/// assert_eq!(ops::diag(&d, 0)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another number of dimensions than one or two; [`ErrorKind::Shape`] for a matrix too large to
/// count.
///
/// # Source
/// C++ `mlx::core::diag` (`mlx/ops.h`).
pub fn diag(a: &Array, k: i32) -> Result<Array> {
    if let &[n] = a.shape() {
        let side = check::length(i64::from(n) + i64::from(k).abs(), "a side of the matrix", "diag")?;
        check::possible(&[side, side], "diag")?;
    }
    let (n, m) = (a.dim(-2).unwrap_or(i32::MAX), a.dim(-1).unwrap_or(0));
    let k = if a.ndim() == 2 { k.clamp(-n, m) } else { k };
    Ok(raw::diag(&a.0, k)?.into())
}

/// The coordinates of a grid over vectors: one array each, or with length 1 outside its own axis when `sparse`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let axes = [Array::vector(&[1i32, 2])?, Array::vector(&[3i32, 4, 5])?];
/// let grid = ops::meshgrid(&axes, false, ops::Indexing::Ij)?;
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when an array is neither a vector nor a scalar.
///
/// # Source
/// C++ `mlx::core::meshgrid` (`mlx/ops.h`).
pub fn meshgrid(arrays: &[Array], sparse: bool, indexing: Indexing) -> Result<Vec<Array>> {
    Ok(Array::wrap_all(raw::meshgrid(Array::raw(arrays), sparse, indexing)?))
}

/// Declares the window functions.
macro_rules! windows {
    ($($(#[$doc:meta])* $name:ident => $output:literal),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let w = ops::", stringify!($name), "(3)?;")]
        #[doc = concat!("let expected = Array::vector(&", $output, ")?;")]
        /// assert!(ops::allclose(&w, &expected, ops::Tolerance::new(1e-5, 1e-6))?.item::<bool>()?);
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Shape`] for a negative `m`.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(m: i32) -> Result<Array> {
            check::possible(&[m], stringify!($name))?;
            Ok(raw::$name(m)?.into())
        }
    )+};
}

windows! {
    /// The Hann window of `m` values. Result: float32. Lazy.
    hanning => "[0.0f32, 1.0, 0.0]",
    /// The Hamming window of `m` values. Result: float32. Lazy.
    hamming => "[0.08f32, 1.0, 0.08]",
    /// The Bartlett window of `m` values. Result: float32. Lazy.
    bartlett => "[0.0f32, 1.0, 0.0]",
    /// The Blackman window of `m` values. Result: float32. Lazy.
    blackman => "[0.0f32, 1.0, 0.0]",
}

impl Array {
    /// An array of zeros of `T`'s dtype. See [`ops::zeros`](zeros).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a negative dimension.
    pub fn zeros<'s, T: Element>(shape: impl IntoShape<'s>) -> Result<Self> {
        zeros(shape, T::DTYPE)
    }

    /// An array of ones of `T`'s dtype. See [`ops::ones`](ones).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a negative dimension.
    pub fn ones<'s, T: Element>(shape: impl IntoShape<'s>) -> Result<Self> {
        ones(shape, T::DTYPE)
    }

    /// An array of `shape` that holds `value` everywhere. See [`ops::full`](full).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a negative dimension.
    pub fn full<'s, T: Element>(shape: impl IntoShape<'s>, value: T) -> Result<Self> {
        full(shape, &Self::scalar(value)?)
    }
}

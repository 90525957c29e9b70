//! Random numbers: from explicit keys, or from the process's own sequence.
//!
//! With a key a draw is a pure function: the same key gives the same values on every thread and every device. With `None` the next key of the
//! process-wide sequence is used, which [`seed`] starts anew and which threads share, so that no two draw the same. Values are those of
//! Python MLX for the same key or seed.
//!
//! ```
//! use oxmlx::{Dtype, random};
//! let key = random::key(7)?;
//! let (a, b) = (random::uniform(4, Dtype::Float32, &key)?, random::uniform(4, Dtype::Float32, &key)?);
//! assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
//! let c = random::uniform(4, Dtype::Float32, None)?;
//! assert_ne!(a.to_vec::<f32>()?, c.to_vec::<f32>()?);
//! # Ok::<(), oxmlx::Error>(())
//! ```

pub(crate) mod implicit;

use std::borrow::Cow;

use oxmlx_sys::generated::random as raw;

use crate::ops::check;
use crate::shape::IntoShape;
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// A key from a seed. Shape `[2]`, uint32.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::random::key` (`mlx/random.h`).
pub fn key(seed: u64) -> Result<Array> {
    Ok(raw::key(seed)?.into())
}

/// Starts the process-wide sequence anew. It applies to all threads.
///
/// ```
/// use oxmlx::{Dtype, random};
/// random::seed(3);
/// let a = random::normal(2, Dtype::Float32, None)?.to_vec::<f32>()?;
/// random::seed(3);
/// assert_eq!(random::normal(2, Dtype::Float32, None)?.to_vec::<f32>()?, a);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Source
/// C++ `mlx::core::random::seed` (`mlx/random.h`); differs: MLX has one sequence a thread, all with one seed.
pub fn seed(seed: u64) {
    implicit::seed(seed);
}

/// Two keys from one. Use each key once: split it for the next draw. Lazy.
///
/// ```
/// use oxmlx::random;
/// let (a, b) = random::split(&random::key(0)?)?;
/// assert_ne!(a.to_vec::<u32>()?, b.to_vec::<u32>()?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when `key` is no key.
///
/// # Source
/// C++ `mlx::core::random::split` (`mlx/random.h`).
pub fn split(key: &Array) -> Result<(Array, Array)> {
    check_key(key, "split")?;
    let (first, second) = raw::split(&key.0)?;
    Ok((first.into(), second.into()))
}

/// `count` keys from one: `[count, 2]`. Lazy.
///
/// ```
/// use oxmlx::random;
/// assert_eq!(random::split_many(&random::key(0)?, 3)?.shape(), [3, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when `key` is no key; [`ErrorKind::Shape`] for a negative count.
///
/// # Source
/// C++ `mlx::core::random::split` (`mlx/random.h`).
pub fn split_many(key: &Array, count: i32) -> Result<Array> {
    check_key(key, "split")?;
    check::possible(&[count, 2], "split")?;
    Ok(raw::split_num(&key.0, count)?.into())
}

fn check_key(key: &Array, op: &'static str) -> Result<()> {
    if key.dtype() == Dtype::Uint32 && key.shape() == [2] {
        return Ok(());
    }
    let text = format!("a key is uint32 of shape [2], not {} of shape {:?}", key.dtype(), key.shape());
    Err(Error::new(ErrorKind::InvalidArgument, op, text).with_shape(key.shape()).with_dtype(key.dtype()))
}

/// The key given, checked, or the next of the sequence.
fn given_or_next<'k>(key: Option<&'k Array>, op: &'static str) -> Result<Cow<'k, Array>> {
    match key {
        Some(key) => check_key(key, op).map(|()| Cow::Borrowed(key)),
        None => implicit::next().map(Cow::Owned),
    }
}

fn possible<'s>(shape: impl IntoShape<'s>, op: &'static str) -> Result<Cow<'s, [i32]>> {
    let shape = shape.into_shape();
    check::possible(&shape, op)?;
    Ok(shape)
}

fn floating(dtype: Dtype, op: &'static str) -> Result<()> {
    if dtype.is_floating() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Dtype, op, format!("it draws floating point values, not {dtype}")).with_dtype(dtype))
}

/// Random bits: unsigned integers of `width` (1, 2 or 4) bytes. Lazy.
///
/// ```
/// use oxmlx::{Dtype, random};
/// assert_eq!(random::bits(3, 1, None)?.dtype(), Dtype::Uint8);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another width or a key that is none.
///
/// # Source
/// C++ `mlx::core::random::bits` (`mlx/random.h`).
pub fn bits<'s, 'k>(shape: impl IntoShape<'s>, width: i32, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    let (shape, key) = (possible(shape, "bits")?, given_or_next(key.into(), "bits")?);
    Ok(raw::bits(&shape, width, Some(&key.0))?.into())
}

/// Uniform values of `[0, 1)`. Lazy.
///
/// ```
/// use oxmlx::{Dtype, random};
/// let u = random::uniform(100, Dtype::Float32, &random::key(7)?)?.to_vec::<f32>()?;
/// assert!(u.iter().all(|u| (0.0..1.0).contains(u)));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for a dtype that is no floating point type; [`ErrorKind::InvalidArgument`] for a key that is none.
///
/// # Source
/// C++ `mlx::core::random::uniform` (`mlx/random.h`).
pub fn uniform<'s, 'k>(shape: impl IntoShape<'s>, dtype: Dtype, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    floating(dtype, "uniform")?;
    let (shape, key) = (possible(shape, "uniform")?, given_or_next(key.into(), "uniform")?);
    Ok(raw::uniform_unit(&shape, dtype, Some(&key.0))?.into())
}

/// Uniform values of `[low, high)`; the bounds broadcast to the shape. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, random};
/// let (low, high) = (Array::scalar(5.0f32)?, Array::scalar(6.0f32)?);
/// let u = random::uniform_between(&low, &high, 100, Dtype::Float32, None)?.to_vec::<f32>()?;
/// assert!(u.iter().all(|u| (5.0..=6.0).contains(u)));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`uniform`]; [`ErrorKind::InvalidArgument`] when the bounds do not broadcast to the shape.
///
/// # Source
/// C++ `mlx::core::random::uniform` (`mlx/random.h`).
pub fn uniform_between<'s, 'k>(
    low: &Array,
    high: &Array,
    shape: impl IntoShape<'s>,
    dtype: Dtype,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    floating(dtype, "uniform")?;
    let (shape, key) = (possible(shape, "uniform")?, given_or_next(key.into(), "uniform")?);
    Ok(raw::uniform(&low.0, &high.0, &shape, dtype, Some(&key.0))?.into())
}

/// Values of the standard normal distribution. Lazy.
///
/// ```
/// use oxmlx::{Dtype, random};
/// assert_eq!(random::normal((2, 3), Dtype::Float16, None)?.shape(), [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`uniform`].
///
/// # Source
/// C++ `mlx::core::random::normal` (`mlx/random.h`).
pub fn normal<'s, 'k>(shape: impl IntoShape<'s>, dtype: Dtype, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    normal_with(shape, dtype, None, None, key)
}

/// Normal values with a mean `loc` and a deviation `scale`, which broadcast to the shape; 0 and 1 when `None`. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, random};
/// let (loc, scale) = (Array::scalar(5.0f32)?, Array::scalar(0.0f32)?);
/// let n = random::normal_with(3, Dtype::Float32, Some(&loc), Some(&scale), None)?;
/// assert_eq!(n.to_vec::<f32>()?, [5.0; 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`uniform`]; [`ErrorKind::InvalidArgument`] when `loc` or `scale` does not broadcast to the shape.
///
/// # Source
/// C++ `mlx::core::random::normal` (`mlx/random.h`).
pub fn normal_with<'s, 'k>(
    shape: impl IntoShape<'s>,
    dtype: Dtype,
    loc: Option<&Array>,
    scale: Option<&Array>,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    floating(dtype, "normal")?;
    let (shape, key) = (possible(shape, "normal")?, given_or_next(key.into(), "normal")?);
    Ok(raw::normal(&shape, dtype, loc.map(|l| &l.0), scale.map(|s| &s.0), Some(&key.0))?.into())
}

/// Vectors of a normal distribution with a mean `[.., n]` and a covariance `[.., n, n]`: `[shape.., n]`. Lazy; on the CPU.
///
/// ```
/// use oxmlx::{Array, Dtype, ops, random};
/// let (mean, covariance) = (Array::zeros::<f32>(2)?, ops::identity(2, Dtype::Float32)?);
/// assert_eq!(random::multivariate_normal(&mean, &covariance, 5, Dtype::Float32, None)?.shape(), [5, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for shapes that do not fit, a dtype but float32 or a key that is none.
///
/// # Source
/// C++ `mlx::core::random::multivariate_normal` (`mlx/random.h`).
pub fn multivariate_normal<'s, 'k>(
    mean: &Array,
    covariance: &Array,
    shape: impl IntoShape<'s>,
    dtype: Dtype,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    const OP: &str = "multivariate_normal";
    let (shape, key) = (possible(shape, OP)?, given_or_next(key.into(), OP)?);
    // MLX takes the decomposition on the processor only.
    crate::runtime::on_cpu(|| Ok(raw::multivariate_normal(&mean.0, &covariance.0, &shape, dtype, Some(&key.0))?.into()))
}

/// Uniform integers of `[low, high)`; the bounds broadcast to the shape. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, random};
/// let n = random::randint(&Array::scalar(3)?, &Array::scalar(5)?, 50, Dtype::Int32, None)?.to_vec::<i32>()?;
/// assert!(n.iter().all(|n| (3..5).contains(n)));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for a dtype that is no integer; [`ErrorKind::InvalidArgument`] when the bounds do not broadcast or the key is
/// none.
///
/// # Source
/// C++ `mlx::core::random::randint` (`mlx/random.h`).
pub fn randint<'s, 'k>(
    low: &Array,
    high: &Array,
    shape: impl IntoShape<'s>,
    dtype: Dtype,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    if !dtype.is_integer() {
        return Err(
            Error::new(ErrorKind::Dtype, "randint", format!("it draws integers, not {dtype}")).with_dtype(dtype)
        );
    }
    let (shape, key) = (possible(shape, "randint")?, given_or_next(key.into(), "randint")?);
    Ok(raw::randint(&low.0, &high.0, &shape, dtype, Some(&key.0))?.into())
}

/// True with probability `p`, which broadcasts to the shape. Result: bool. Lazy.
///
/// ```
/// use oxmlx::{Array, random};
/// assert_eq!(random::bernoulli(&Array::scalar(1.0f32)?, 3, None)?.to_vec::<bool>()?, [true; 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when `p` does not broadcast to the shape or the key is none.
///
/// # Source
/// C++ `mlx::core::random::bernoulli` (`mlx/random.h`).
pub fn bernoulli<'s, 'k>(p: &Array, shape: impl IntoShape<'s>, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    let (shape, key) = (possible(shape, "bernoulli")?, given_or_next(key.into(), "bernoulli")?);
    Ok(raw::bernoulli_shape(&p.0, &shape, Some(&key.0))?.into())
}

/// Normal values cut to `[lower, upper]`; the bounds broadcast to the shape. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, random};
/// let (low, high) = (Array::scalar(-0.5f32)?, Array::scalar(0.5f32)?);
/// let n = random::truncated_normal(&low, &high, 50, Dtype::Float32, None)?.to_vec::<f32>()?;
/// assert!(n.iter().all(|n| n.abs() <= 0.5));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`uniform_between`].
///
/// # Source
/// C++ `mlx::core::random::truncated_normal` (`mlx/random.h`).
pub fn truncated_normal<'s, 'k>(
    lower: &Array,
    upper: &Array,
    shape: impl IntoShape<'s>,
    dtype: Dtype,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    const OP: &str = "truncated_normal";
    floating(dtype, OP)?;
    let (shape, key) = (possible(shape, OP)?, given_or_next(key.into(), OP)?);
    Ok(raw::truncated_normal_shape(&lower.0, &upper.0, &shape, dtype, Some(&key.0))?.into())
}

/// Values of the standard Gumbel distribution. Lazy.
///
/// ```
/// use oxmlx::{Dtype, random};
/// assert_eq!(random::gumbel((2, 3), Dtype::Float32, None)?.shape(), [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`uniform`].
///
/// # Source
/// C++ `mlx::core::random::gumbel` (`mlx/random.h`).
pub fn gumbel<'s, 'k>(shape: impl IntoShape<'s>, dtype: Dtype, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    floating(dtype, "gumbel")?;
    let (shape, key) = (possible(shape, "gumbel")?, given_or_next(key.into(), "gumbel")?);
    Ok(raw::gumbel(&shape, dtype, Some(&key.0))?.into())
}

/// Values of the Laplace distribution with a mean `loc` and a diversity `scale`. Lazy.
///
/// ```
/// use oxmlx::{Dtype, random};
/// assert_eq!(random::laplace(3, Dtype::Float32, 5.0, 0.0, None)?.to_vec::<f32>()?, [5.0; 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`uniform`].
///
/// # Source
/// C++ `mlx::core::random::laplace` (`mlx/random.h`).
pub fn laplace<'s, 'k>(
    shape: impl IntoShape<'s>,
    dtype: Dtype,
    loc: f32,
    scale: f32,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    floating(dtype, "laplace")?;
    let (shape, key) = (possible(shape, "laplace")?, given_or_next(key.into(), "laplace")?);
    Ok(raw::laplace(&shape, dtype, loc, scale, Some(&key.0))?.into())
}

/// An index along `axis` for every other position, drawn with the probabilities `softmax(logits)`. Result: uint32. Lazy.
///
/// ```
/// use oxmlx::{Array, random};
/// let logits = Array::matrix(&[[0.0f32, f32::NEG_INFINITY], [f32::NEG_INFINITY, 0.0]])?;
/// assert_eq!(random::categorical(&logits, -1, None)?.to_vec::<u32>()?, [0, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] for a key that is none.
///
/// # Source
/// C++ `mlx::core::random::categorical` (`mlx/random.h`).
pub fn categorical<'k>(logits: &Array, axis: i32, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    check::axis_length(logits, axis, "categorical")?;
    let key = given_or_next(key.into(), "categorical")?;
    Ok(raw::categorical(&logits.0, axis, Some(&key.0))?.into())
}

/// [`categorical`] with `count` independent draws as a new last axis. Lazy.
///
/// ```
/// use oxmlx::{Array, random};
/// let logits = Array::matrix(&[[0.0f32, f32::NEG_INFINITY]])?;
/// assert_eq!(random::categorical_many(&logits, -1, 3, None)?.shape(), [1, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`categorical`]; [`ErrorKind::Shape`] for a negative count.
///
/// # Source
/// C++ `mlx::core::random::categorical` with `num_samples` (`mlx/random.h`).
pub fn categorical_many<'k>(logits: &Array, axis: i32, count: i32, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    check::axis_length(logits, axis, "categorical")?;
    check::possible(&[count], "categorical")?;
    let key = given_or_next(key.into(), "categorical")?;
    Ok(raw::categorical_num_samples(&logits.0, axis, count, Some(&key.0))?.into())
}

/// [`categorical`] with a shape of its own, to which the shape of the logits without `axis` broadcasts. Lazy.
///
/// ```
/// use oxmlx::{Array, random};
/// let logits = Array::matrix(&[[0.0f32, f32::NEG_INFINITY]])?;
/// assert_eq!(random::categorical_shape(&logits, -1, (4, 1), None)?.shape(), [4, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`categorical`]; [`ErrorKind::InvalidArgument`] for a shape that does not fit.
///
/// # Source
/// C++ `mlx::core::random::categorical` with `shape` (`mlx/random.h`).
pub fn categorical_shape<'s, 'k>(
    logits: &Array,
    axis: i32,
    shape: impl IntoShape<'s>,
    key: impl Into<Option<&'k Array>>,
) -> Result<Array> {
    check::axis_length(logits, axis, "categorical")?;
    let (shape, key) = (possible(shape, "categorical")?, given_or_next(key.into(), "categorical")?);
    Ok(raw::categorical_shape(&logits.0, axis, &shape, Some(&key.0))?.into())
}

/// The slices of `x` along `axis` in random order. Lazy.
///
/// ```
/// use oxmlx::{Array, ops, random};
/// let shuffled = random::permutation(&Array::vector(&[1i32, 2, 3])?, 0, None)?;
/// assert_eq!(ops::sort(&shuffled)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] for a key that is none.
///
/// # Source
/// C++ `mlx::core::random::permutation` (`mlx/random.h`).
pub fn permutation<'k>(x: &Array, axis: i32, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    let axis = check::axis_from_front(x, axis, "permutation")? as i32;
    let key = given_or_next(key.into(), "permutation")?;
    Ok(raw::permutation(&x.0, axis, Some(&key.0))?.into())
}

/// The numbers from 0 up to, and without, `n` in random order. Result: uint32. Lazy.
///
/// ```
/// use oxmlx::{ops, random};
/// assert_eq!(ops::sort(&random::permutation_of(3, None)?)?.to_vec::<u32>()?, [0, 1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a negative `n`; [`ErrorKind::InvalidArgument`] for a key that is none.
///
/// # Source
/// C++ `mlx::core::random::permutation` (`mlx/random.h`).
pub fn permutation_of<'k>(n: i32, key: impl Into<Option<&'k Array>>) -> Result<Array> {
    check::possible(&[n], "permutation")?;
    let key = given_or_next(key.into(), "permutation")?;
    Ok(raw::permutation_range(n, Some(&key.0))?.into())
}

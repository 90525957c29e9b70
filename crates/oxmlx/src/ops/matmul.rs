//! Matrix products and their relatives.

use oxmlx_sys::generated::ops as raw;

use super::arithmetic::binary;
use super::{check, index};
use crate::{Array, Dtype, Error, ErrorKind, Result, cpu};

/// The matrix product.
///
/// Shapes: `[.., m, k]` and `[.., k, n]` give `[.., m, n]`; the leading dimensions broadcast; a vector stands for a row on the left
/// and for a column on the right. Dtypes: floating point and complex; integers become float32. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
/// assert_eq!(ops::matmul(&a, &a)?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the inner dimensions differ or an operand is a scalar.
///
/// # Source
/// C++ `mlx::core::matmul` (`mlx/ops.h`).
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    cpu::matmul(a, b).unwrap_or_else(|| mlx_matmul(a, b))
}

/// MLX's own node.
pub(crate) fn mlx_matmul(a: &Array, b: &Array) -> Result<Array> {
    Ok(raw::matmul(&a.0, &b.0)?.into())
}

/// `beta * c + alpha * (a @ b)`. Shapes: those of [`matmul`]; `c` broadcasts. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::matrix(&[[1.0f32, 2.0]])?, Array::matrix(&[[3.0f32], [4.0]])?);
/// assert_eq!(ops::addmm(&Array::scalar(1.0f32)?, &a, &b, 2.0, 10.0)?.to_vec::<f32>()?, [32.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`matmul`].
///
/// # Source
/// C++ `mlx::core::addmm` (`mlx/ops.h`); differs: its forward derivative leaves `alpha` and `beta` out there.
pub fn addmm(c: &Array, a: &Array, b: &Array, alpha: f32, beta: f32) -> Result<Array> {
    cpu::addmm(c, a, b, alpha, beta).unwrap_or_else(|| mlx_addmm(c, a, b, alpha, beta))
}

/// MLX's own nodes.
pub(crate) fn mlx_addmm(c: &Array, a: &Array, b: &Array, alpha: f32, beta: f32) -> Result<Array> {
    let fused: Array = raw::addmm(&c.0, &a.0, &b.0, alpha, beta)?.into();
    if (alpha, beta) == (1.0, 1.0) || !oxmlx_sys::trace::is_tracing() {
        return Ok(fused);
    }
    // The derivative may be wanted: of the parts it is right.
    let scaled = |x: &Array, by: f32| super::multiply(x, &super::astype(&Array::scalar(by)?, fused.dtype())?);
    super::add(&scaled(&mlx_matmul(a, b)?, alpha)?, &scaled(c, beta)?)
}

binary! {
    /// The products of every element of `a` with every element of `b`: a matrix. Both are flattened, not broadcast. Dtypes: any.
    outer: "[1i32, 2]", "[3i32, 4]" => "[[3i32, 4], [6, 8]].as_flattened())?.reshape((2, 2)",
    /// The sums of products along the last axis of both. The other dimensions are those of `a`, then of `b`. Dtypes: any.
    inner: "[1.0f32, 2.0]", "[3.0f32, 4.0]" => "[11.0f32]",
    /// The Kronecker product: `b` in place of every element of `a`, times it. Dtypes: any.
    kron: "[1i32, 2]", "[3i32, 4]" => "[3i32, 4, 6, 8]",
}

/// The sums of products along one axis. Shapes: broadcast, without `axis`. Dtypes: any; the conjugate of `a` when complex. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::vector(&[1.0f32, 2.0])?, Array::vector(&[3.0f32, 4.0])?);
/// assert_eq!(ops::vecdot(&a, &b, -1)?.item::<f32>()?, 11.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] when the shapes do not fit.
///
/// # Source
/// C++ `mlx::core::vecdot` (`mlx/ops.h`).
pub fn vecdot(a: &Array, b: &Array, axis: i32) -> Result<Array> {
    check::axis_length(a, axis, "vecdot")?;
    check::axis_length(b, axis, "vecdot")?;
    Ok(raw::vecdot(&a.0, &b.0, axis)?.into())
}

/// The sums of products over the last `count` axes of `a` and the first of `b`. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::ones::<f32>((2, 3, 4))?, Array::ones::<f32>((3, 4, 5))?);
/// assert_eq!(ops::tensordot(&a, &b, 2)?.shape(), [2, 5]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a count outside the dimensions or lengths that differ.
///
/// # Source
/// C++ `mlx::core::tensordot` (`mlx/ops.h`).
pub fn tensordot(a: &Array, b: &Array, count: i32) -> Result<Array> {
    Ok(raw::tensordot_axis(&a.0, &b.0, count)?.into())
}

/// The sums of products over `axes_a[i]` of `a` together with `axes_b[i]` of `b`. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::ones::<f32>((2, 3))?, Array::ones::<f32>((5, 3))?);
/// assert_eq!(ops::tensordot_axes(&a, &b, &[1], &[1])?.shape(), [2, 5]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice; [`ErrorKind::InvalidArgument`] when numbers of axes or lengths
/// differ.
///
/// # Source
/// C++ `mlx::core::tensordot` (`mlx/ops.h`).
pub fn tensordot_axes(a: &Array, b: &Array, axes_a: &[i32], axes_b: &[i32]) -> Result<Array> {
    check::axes(a, axes_a, "tensordot")?;
    check::axes(b, axes_b, "tensordot")?;
    Ok(raw::tensordot_axes(&a.0, &b.0, axes_a, axes_b)?.into())
}

/// The elements of the `offset`th diagonal of two axes, as a new last axis. Dtypes: any. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
/// assert_eq!(ops::diagonal(&a, 0, 0, 1)?.to_vec::<i32>()?, [1, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice.
///
/// # Source
/// C++ `mlx::core::diagonal` (`mlx/ops.h`).
pub fn diagonal(a: &Array, offset: i32, axis1: i32, axis2: i32) -> Result<Array> {
    let offset = diagonal_offset(a, offset, axis1, axis2, "diagonal")?;
    Ok(raw::diagonal(&a.0, offset, axis1, axis2)?.into())
}

/// The sum of a diagonal. See [`diagonal`]. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::matrix(&[[1i32, 2], [3, 4]])?;
/// assert_eq!(ops::trace(&a, 0, 0, 1, None)?.item::<i32>()?, 5);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`diagonal`].
///
/// # Source
/// C++ `mlx::core::trace` (`mlx/ops.h`).
pub fn trace(a: &Array, offset: i32, axis1: i32, axis2: i32, dtype: Option<Dtype>) -> Result<Array> {
    let offset = diagonal_offset(a, offset, axis1, axis2, "trace")?;
    let sum = Array::from(match dtype {
        Some(dtype) => raw::trace_dtype(&a.0, offset, axis1, axis2, dtype)?,
        None => raw::trace(&a.0, offset, axis1, axis2)?,
    });
    // MLX may never come to an end with the sum of a diagonal without elements.
    if diagonal(a, offset, axis1, axis2)?.size() == 0 {
        return super::zeros(sum.shape(), sum.dtype());
    }
    Ok(sum)
}

/// The offset no farther out than the first diagonal without elements: MLX negates it in 32 bits.
fn diagonal_offset(a: &Array, offset: i32, axis1: i32, axis2: i32, op: &'static str) -> Result<i32> {
    check::axes(a, &[axis1, axis2], op)?;
    let (rows, columns) = (check::axis_length(a, axis1, op)?, check::axis_length(a, axis2, op)?);
    Ok(offset.clamp(-rows, columns))
}

/// Products of matrices chosen from two stacks: `a[lhs[i]] @ b[rhs[i]]`.
///
/// Shapes: `a` `[.., m, k]`, `b` `[.., k, n]`; the index arrays, which count the matrices in row-major order, broadcast; the result
/// `[indices.., m, n]`. `None` takes the matrices in their order. Dtypes: floating point; indices integer, **clamped** into the stack.
/// Lazy. `sorted` promises that the indices rise, which some devices use.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::from_slice(&[1.0f32, 2.0], (2, 1, 1))?;
/// let picked = ops::gather_mm(&a, &a, Some(&Array::vector(&[0u32, 1])?), Some(&Array::vector(&[1u32, 1])?), false)?;
/// assert_eq!(picked.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for indices that are no integers; [`ErrorKind::InvalidArgument`] for shapes that do not fit.
///
/// # Source
/// C++ `mlx::core::gather_mm` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn gather_mm(a: &Array, b: &Array, lhs: Option<&Array>, rhs: Option<&Array>, sorted: bool) -> Result<Array> {
    let lhs = lhs.map(|i| matrix_indices(i, a, "gather_mm")).transpose()?;
    let rhs = rhs.map(|i| matrix_indices(i, b, "gather_mm")).transpose()?;
    Ok(raw::gather_mm(&a.0, &b.0, lhs.as_ref().map(|i| &i.0), rhs.as_ref().map(|i| &i.0), sorted)?.into())
}

/// Indices of the matrices of a stack, forced into it. They do not count from the end: MLX takes them as unsigned.
pub(crate) fn matrix_indices(indices: &Array, stack: &Array, op: &'static str) -> Result<Array> {
    let count = stack.shape().iter().rev().skip(2).fold(1i64, |n, &dim| n.saturating_mul(dim.into()));
    let count = check::length(count, "the stack", op)?;
    let inside = index::into_axis(indices, count, 1, op)?;
    let unsigned = matches!(indices.dtype(), Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64);
    if unsigned {
        return Ok(inside);
    }
    super::maximum(&inside, &super::astype(&Array::scalar(0i32)?, inside.dtype())?)
}

/// Products of parts of the inner axis: for each segment `a[:, from..to] @ b[from..to, :]`.
///
/// Shapes: `a` `[m, k]`, `b` `[k, n]`, `segments` `[.., 2]`; the result `[.., m, n]`. Dtypes: floating point; segments integer,
/// **clamped** into `0..=k`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::ones::<f32>((1, 3))?, Array::ones::<f32>((3, 1))?);
/// let segments = Array::matrix(&[[0u32, 1], [1, 3]])?;
/// assert_eq!(ops::segmented_mm(&a, &b, &segments)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for segments that are no integers; [`ErrorKind::InvalidArgument`] for shapes that do not fit.
///
/// # Source
/// C++ `mlx::core::segmented_mm` (`mlx/ops.h`); differs: out of range is undefined there.
pub fn segmented_mm(a: &Array, b: &Array, segments: &Array) -> Result<Array> {
    check::integer(segments, "segmented_mm")?;
    let (k, rows) = (a.dim(-1).unwrap_or(0), b.dim(0).unwrap_or(0));
    if a.ndim() != 2 || b.ndim() != 2 || k != rows {
        let text = format!("shapes {:?} and {:?} are no matrices with one inner axis", a.shape(), b.shape());
        return Err(Error::new(ErrorKind::Shape, "segmented_mm", text).with_shape(a.shape()).with_shape(b.shape()));
    }
    let wide = super::astype(segments, Dtype::Int64)?;
    let low = super::maximum(&wide, &Array::scalar(0i64)?)?;
    let inside = super::astype(&super::minimum(&low, &Array::scalar(i64::from(k))?)?, Dtype::Uint32)?;
    // A segment that ends before it starts has no elements, not a negative number of them.
    if inside.dim(-1) == Some(2) {
        let ends = super::split(&inside, 2, -1)?;
        let to = super::maximum(&ends[0], &ends[1])?;
        let segments = super::concatenate(&[ends[0].clone(), to], -1)?;
        return Ok(raw::segmented_mm(&a.0, &b.0, &segments.0)?.into());
    }
    Ok(raw::segmented_mm(&a.0, &b.0, &inside.0)?.into())
}

/// Masks of a [`block_masked_mm`], each over blocks of its matrix.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockMasks<'a> {
    /// Of the result; blocks that are false or zero are zero and not computed.
    pub out: Option<&'a Array>,
    /// Of the left operand.
    pub lhs: Option<&'a Array>,
    /// Of the right operand.
    pub rhs: Option<&'a Array>,
}

/// The matrix product with blocks of `block_size` (32 or 64) left out by masks, or scaled by them when they are floats.
///
/// Shapes: those of [`matmul`]; a mask `[.., blocks, blocks]`. Dtypes: floating point; masks bool or the same. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = Array::ones::<f32>((32, 32))?;
/// let none = Array::matrix(&[[false]])?;
/// let masks = ops::BlockMasks { out: Some(&none), ..Default::default() };
/// assert_eq!(ops::sum(&ops::block_masked_mm(&a, &a, 32, masks)?)?.item::<f32>()?, 0.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another block size or shapes that do not fit.
///
/// # Source
/// C++ `mlx::core::block_masked_mm` (`mlx/ops.h`).
pub fn block_masked_mm(a: &Array, b: &Array, block_size: i32, masks: BlockMasks<'_>) -> Result<Array> {
    let BlockMasks { out, lhs, rhs } = masks;
    Ok(raw::block_masked_mm(&a.0, &b.0, block_size, out.map(|m| &m.0), lhs.map(|m| &m.0), rhs.map(|m| &m.0))?.into())
}

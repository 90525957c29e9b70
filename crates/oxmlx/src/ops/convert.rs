//! Changes of dtype and of layout.

use oxmlx_sys::generated::ops as raw;

use super::check;
use crate::shape::IntoShape;
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// The array's values as another dtype. A float that an integer can't hold becomes what the processor's conversion gives. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, ops};
/// let a = Array::from_slice(&[1.7f32, -1.7], 2)?;
/// assert_eq!(ops::astype(&a, Dtype::Int32)?.to_vec::<i32>()?, [1, -1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::astype` (`mlx/ops.h`).
pub fn astype(a: &Array, dtype: Dtype) -> Result<Array> {
    Ok(raw::astype(&a.0, dtype)?.into())
}

/// The same bytes read as another dtype; the last dimension grows or shrinks with the element's size. Lazy.
///
/// ```
/// use oxmlx::{Array, Dtype, ops};
/// let bits = ops::view(&Array::vector(&[1.0f32])?, Dtype::Uint32)?;
/// assert_eq!(bits.to_vec::<u32>()?, [1.0f32.to_bits()]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the last dimension's bytes are no whole number of the new elements;
/// [`ErrorKind::Dtype`] for bool, whose bytes must be 0 or 1.
///
/// # Source
/// C++ `mlx::core::view` (`mlx/ops.h`); differs: a view as bool is not allowed.
pub fn view(a: &Array, dtype: Dtype) -> Result<Array> {
    if dtype == Dtype::Bool && a.dtype() != Dtype::Bool {
        let text = format!("the bytes of {} need not be 0 or 1: compare with zero instead", a.dtype());
        return Err(Error::new(ErrorKind::Dtype, "view", text).with_dtype(a.dtype()).with_dtype(dtype));
    }
    if a.dtype().size() > dtype.size() {
        let ratio = (a.dtype().size() / dtype.size()) as i64;
        check::length(ratio.saturating_mul(a.dim(-1).unwrap_or(1).into()), "the last dimension", "view")?;
    }
    Ok(raw::view(&a.0, dtype)?.into())
}

/// The same values with their memory in row-major order without gaps; in either order when `allow_col_major`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let a = ops::contiguous(&Array::matrix(&[[1i32, 2], [3, 4]])?.transpose()?, false)?;
/// a.eval()?;
/// assert_eq!(a.try_as_slice::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::contiguous` (`mlx/ops.h`).
pub fn contiguous(a: &Array, allow_col_major: bool) -> Result<Array> {
    Ok(raw::contiguous(&a.0, allow_col_major)?.into())
}

/// A copy: a node of its own with the same values. Lazy. ([`Clone`] makes another handle of the same node.)
///
/// ```
/// use oxmlx::{Array, ops};
/// assert_eq!(ops::copy(&Array::vector(&[1i32, 2])?)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::copy` (`mlx/ops.h`).
pub fn copy(a: &Array) -> Result<Array> {
    Ok(raw::copy(&a.0)?.into())
}

/// `inputs` as they are, computed only after `dependencies`. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let (a, b) = (Array::scalar(1i32)?, Array::scalar(2i32)?);
/// assert_eq!(ops::depends(&[a], &[b])?[0].item::<i32>()?, 1);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::depends` (`mlx/ops.h`).
pub fn depends(inputs: &[Array], dependencies: &[Array]) -> Result<Vec<Array>> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    Ok(Array::wrap_all(raw::depends(Array::raw(inputs), Array::raw(dependencies))?))
}

/// A view of the elements in row-major order through a shape, strides and an offset of one's own, all in elements. Lazy.
///
/// ```
/// use oxmlx::{Array, ops};
/// let windows = ops::as_strided(&Array::vector(&[1i32, 2, 3, 4])?, (3, 2), &[1, 1], 0)?;
/// assert_eq!(windows.to_vec::<i32>()?, [1, 2, 2, 3, 3, 4]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a shape that is none or another number of strides; [`ErrorKind::Index`] when an element of the view would
/// lie outside the array.
///
/// # Source
/// C++ `mlx::core::as_strided` (`mlx/ops.h`); differs: the view is checked to lie inside.
pub fn as_strided<'s>(a: &Array, shape: impl IntoShape<'s>, strides: &[i64], offset: usize) -> Result<Array> {
    let shape = shape.into_shape();
    check::possible(&shape, "as_strided")?;
    if shape.len() != strides.len() {
        let text = format!("{} strides given for shape {shape:?}", strides.len());
        return Err(Error::new(ErrorKind::Shape, "as_strided", text).with_shape(&shape));
    }
    if !shape.contains(&0) {
        // The lowest and the highest element that the view reaches, in 128 bits that nothing here can leave.
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (&n, &stride) in shape.iter().zip(strides) {
            let reach = i128::from(n - 1) * i128::from(stride);
            low += reach.min(0);
            high += reach.max(0);
        }
        if low < 0 || high >= a.size() as i128 {
            let text = format!(
                "shape {shape:?} with strides {strides:?} from {offset} reaches elements {low} to {high} of {}",
                a.size()
            );
            return Err(Error::new(ErrorKind::Index, "as_strided", text).with_shape(a.shape()).with_shape(&shape));
        }
    } else if offset > a.size() {
        let text = format!("offset {offset} lies outside the {} elements", a.size());
        return Err(Error::new(ErrorKind::Index, "as_strided", text).with_shape(a.shape()));
    }
    Ok(raw::as_strided(&a.0, &shape, strides, offset)?.into())
}

//! Changes of dtype and of layout.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Dtype, Result};

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

/// The same values with their memory in row-major order without gaps; in either order when `allow_col_major`. Lazy.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::contiguous` (`mlx/ops.h`).
pub fn contiguous(a: &Array, allow_col_major: bool) -> Result<Array> {
    Ok(raw::contiguous(&a.0, allow_col_major)?.into())
}

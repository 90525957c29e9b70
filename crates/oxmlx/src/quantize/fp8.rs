//! 8-bit floats (e4m3), which MLX keeps in uint8.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Dtype, Error, ErrorKind, Result};

/// The values rounded to 8-bit floats (e4m3), as uint8. Lazy.
///
/// Shapes: any. Dtypes: float16, bfloat16, float32.
///
/// ```
/// use oxmlx::{Array, Dtype};
/// use oxmlx::quantize::{from_fp8, to_fp8};
/// let bytes = to_fp8(&Array::vector(&[1.0f32, -0.5, 17.0])?)?;
/// assert_eq!(bytes.to_vec::<u8>()?, [0x38, 0xb0, 0x58]);
/// assert_eq!(from_fp8(&bytes, Dtype::Float32)?.to_vec::<f32>()?, [1.0, -0.5, 16.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for no floating point.
///
/// # Source
/// C++ `mlx::core::to_fp8` (`mlx/ops.h`).
pub fn to_fp8(x: &Array) -> Result<Array> {
    floating(x.dtype(), "to_fp8")?;
    Ok(raw::to_fp8(&x.0)?.into())
}

/// The values of 8-bit floats (e4m3) that lie in uint8. Lazy. See [`to_fp8`].
///
/// # Errors
/// [`ErrorKind::Dtype`] when `x` is not uint8 or `dtype` no float.
///
/// # Source
/// C++ `mlx::core::from_fp8` (`mlx/ops.h`).
pub fn from_fp8(x: &Array, dtype: Dtype) -> Result<Array> {
    floating(dtype, "from_fp8")?;
    if x.dtype() != Dtype::Uint8 {
        let text = format!("8-bit floats lie in uint8, not {}", x.dtype());
        return Err(Error::new(ErrorKind::Dtype, "from_fp8", text).with_dtype(x.dtype()));
    }
    Ok(raw::from_fp8(&x.0, dtype)?.into())
}

fn floating(dtype: Dtype, op: &'static str) -> Result<()> {
    if dtype.is_floating() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Dtype, op, format!("{dtype} is no floating point")).with_dtype(dtype))
}

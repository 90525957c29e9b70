//! Element types: MLX's fourteen dtypes, and the Rust types that hold them.

use bytemuck::checked::CheckedCastError;
use half::{bf16, f16};
use num_complex::Complex32;

use oxmlx_sys::generated::{dtype as raw, utils};
pub use oxmlx_sys::types::{Dtype, DtypeCategory, DtypeKind};

use crate::{Array, Error, ErrorKind, Result};

mod sealed {
    use bytemuck::checked::CheckedCastError;

    pub trait Sealed: Sized {
        /// Bytes as elements where they lie. Only of types that not every bit pattern is a value of each element is looked at, which
        /// takes long for a model's weights without optimisation.
        #[doc(hidden)]
        fn cast(bytes: &[u8]) -> Result<&[Self], CheckedCastError>;
    }
}

/// A Rust type that an array can be made from and read as. Sealed: there is one for each [`Dtype`].
pub trait Element: sealed::Sealed + bytemuck::CheckedBitPattern + bytemuck::NoUninit + Send + Sync {
    /// The dtype that holds it.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),+ $(,)?) => {$(
        impl sealed::Sealed for $rust {
            fn cast(bytes: &[u8]) -> Result<&[Self], CheckedCastError> {
                Ok(bytemuck::try_cast_slice(bytes)?)
            }
        }
        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )+};
}

impl sealed::Sealed for bool {
    fn cast(bytes: &[u8]) -> Result<&[Self], CheckedCastError> {
        bytemuck::checked::try_cast_slice(bytes)
    }
}

impl Element for bool {
    const DTYPE: Dtype = Dtype::Bool;
}

elements! {
    u8 => Uint8,
    u16 => Uint16,
    u32 => Uint32,
    u64 => Uint64,
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    f16 => Float16,
    f32 => Float32,
    f64 => Float64,
    bf16 => Bfloat16,
    Complex32 => Complex64,
}

/// The dtype that two dtypes promote to.
///
/// ```
/// use oxmlx::dtype::{Dtype, promote_types};
/// assert_eq!(promote_types(Dtype::Int32, Dtype::Float16)?, Dtype::Float16);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::promote_types` (`mlx/dtype.h`).
pub fn promote_types(a: Dtype, b: Dtype) -> Result<Dtype> {
    Ok(raw::promote_types(a, b)?)
}

/// The dtype that all of these arrays promote to.
///
/// ```
/// use oxmlx::{Array, Dtype, dtype};
/// let arrays = [Array::scalar(1i8)?, Array::scalar(1u8)?];
/// assert_eq!(dtype::result_type(&arrays)?, Dtype::Int16);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::result_type` (`mlx/utils.h`).
pub fn result_type(arrays: &[Array]) -> Result<Dtype> {
    Ok(utils::result_type(Array::raw(arrays))?)
}

/// Whether a dtype belongs to a category, as in numpy's tree.
///
/// ```
/// use oxmlx::dtype::{Dtype, DtypeCategory, issubdtype};
/// assert!(issubdtype(Dtype::Bfloat16, DtypeCategory::Floating)?);
/// assert!(!issubdtype(Dtype::Bool, DtypeCategory::Number)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::issubdtype` (`mlx/dtype.h`).
pub fn issubdtype(dtype: Dtype, category: DtypeCategory) -> Result<bool> {
    Ok(raw::issubdtype_of(dtype, category)?)
}

/// Whether all of one category belongs to another.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::issubdtype` (`mlx/dtype.h`).
pub fn is_subcategory(inner: DtypeCategory, outer: DtypeCategory) -> Result<bool> {
    Ok(raw::issubdtype_category_of(inner, outer)?)
}

/// What kind of number a dtype holds.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::kindof` (`mlx/dtype.h`).
pub fn kind_of(dtype: Dtype) -> Result<DtypeKind> {
    Ok(raw::kindof(dtype)?)
}

/// The limits of a floating point dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatInfo {
    /// The smallest finite value.
    pub min: f64,
    /// The largest finite value.
    pub max: f64,
    /// The distance from 1 to the next larger value.
    pub eps: f64,
}

/// The limits of a floating point dtype; those of its parts for complex64.
///
/// ```
/// use oxmlx::dtype::{Dtype, finfo};
/// assert_eq!(finfo(Dtype::Float16)?.max, 65504.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for a dtype that is no float.
///
/// # Source
/// C++ `mlx::core::finfo` (`mlx/utils.h`).
pub fn finfo(dtype: Dtype) -> Result<FloatInfo> {
    let (max, eps) = match dtype {
        Dtype::Float16 => (f16::MAX.to_f64(), f16::EPSILON.to_f64()),
        Dtype::Bfloat16 => (bf16::MAX.to_f64(), bf16::EPSILON.to_f64()),
        Dtype::Float32 | Dtype::Complex64 => (f64::from(f32::MAX), f64::from(f32::EPSILON)),
        Dtype::Float64 => (f64::MAX, f64::EPSILON),
        _ => return Err(Error::new(ErrorKind::Dtype, "finfo", format!("{dtype} is no float")).with_dtype(dtype)),
    };
    Ok(FloatInfo { min: -max, max, eps })
}

/// The smallest and the largest value of an integer dtype.
///
/// ```
/// use oxmlx::dtype::{Dtype, iinfo};
/// assert_eq!(iinfo(Dtype::Int8)?, (-128, 127));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Dtype`] for a dtype that is no integer.
///
/// # Source
/// C++ `mlx::core::iinfo` (`mlx/utils.h`).
pub fn iinfo(dtype: Dtype) -> Result<(i128, i128)> {
    Ok(match dtype {
        Dtype::Uint8 => (0, u8::MAX.into()),
        Dtype::Uint16 => (0, u16::MAX.into()),
        Dtype::Uint32 => (0, u32::MAX.into()),
        Dtype::Uint64 => (0, u64::MAX.into()),
        Dtype::Int8 => (i8::MIN.into(), i8::MAX.into()),
        Dtype::Int16 => (i16::MIN.into(), i16::MAX.into()),
        Dtype::Int32 => (i32::MIN.into(), i32::MAX.into()),
        Dtype::Int64 => (i64::MIN.into(), i64::MAX.into()),
        _ => return Err(Error::new(ErrorKind::Dtype, "iinfo", format!("{dtype} is no integer")).with_dtype(dtype)),
    })
}

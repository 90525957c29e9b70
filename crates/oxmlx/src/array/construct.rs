//! Making arrays from Rust values.

use crate::shape::{IntoShape, element_count};
use crate::{Array, Dtype, Element, Error, ErrorKind, Result};

impl Array {
    /// An array of `shape` that holds a copy of `values`, in row-major order. Dtype: that of `T`.
    ///
    /// ```
    /// use oxmlx::{Array, Dtype};
    /// let a = Array::from_slice(&[1i32, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!((a.shape(), a.dtype()), (&[2, 3][..], Dtype::Int32));
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the shape has a negative dimension or another number of elements.
    ///
    /// # Source
    /// C++ `mlx::core::array(It, Shape, Dtype)`.
    pub fn from_slice<'s, T: Element>(values: &[T], shape: impl IntoShape<'s>) -> Result<Self> {
        let shape = shape.into_shape();
        match element_count(&shape) {
            Some(n) if n == values.len() => Self::from_checked(bytemuck::cast_slice(values), &shape, T::DTYPE),
            Some(n) => Err(Error::new(
                ErrorKind::Shape,
                "array",
                format!("{} elements given, shape {shape:?} has {n}", values.len()),
            )
            .with_shape(&shape)),
            None => Err(impossible(&shape)),
        }
    }

    /// An array of one dimension that holds a copy of `values`. Dtype: that of `T`.
    ///
    /// ```
    /// use oxmlx::Array;
    /// assert_eq!(Array::vector(&[1u8, 2, 3])?.shape(), [3]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for more values than MLX counts.
    pub fn vector<T: Element>(values: &[T]) -> Result<Self> {
        let length = crate::ops::check::length(values.len() as i64, "the array", "array")?;
        Self::from_checked(bytemuck::cast_slice(values), &[length], T::DTYPE)
    }

    /// An array of two dimensions that holds a copy of `rows`. Dtype: that of `T`.
    ///
    /// ```
    /// use oxmlx::Array;
    /// assert_eq!(Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?.shape(), [3, 2]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for more values than MLX counts.
    pub fn matrix<T: Element, const C: usize>(rows: &[[T; C]]) -> Result<Self> {
        let count = crate::ops::check::length(rows.len() as i64, "the array", "array")?;
        let length = crate::ops::check::length(C as i64, "the array", "array")?;
        Self::from_checked(bytemuck::cast_slice(rows.as_flattened()), &[count, length], T::DTYPE)
    }

    /// A scalar: an array without dimensions. Dtype: that of `T`.
    ///
    /// ```
    /// use oxmlx::Array;
    /// assert_eq!(Array::scalar(2.5f32)?.item::<f32>()?, 2.5);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        Self::from_checked(bytemuck::bytes_of(&value), &[], T::DTYPE)
    }

    /// An array of `shape` and `dtype` that holds a copy of `bytes`: row-major elements in native byte order.
    ///
    /// ```
    /// use oxmlx::{Array, Dtype};
    /// let error = Array::from_bytes(&[0; 11], 3, Dtype::Float32).unwrap_err();
    /// assert_eq!(error.to_string(), "array: 11 bytes given, shape [3] of float32 takes 12");
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the shape has a negative dimension or takes another number of bytes; [`ErrorKind::Format`] when
    /// the dtype is `bool` and a byte is neither 0 nor 1.
    pub fn from_bytes<'s>(bytes: &[u8], shape: impl IntoShape<'s>, dtype: Dtype) -> Result<Self> {
        let shape = shape.into_shape();
        let needed =
            element_count(&shape).and_then(|n| n.checked_mul(dtype.size())).ok_or_else(|| impossible(&shape))?;
        if needed != bytes.len() {
            let text = format!("{} bytes given, shape {shape:?} of {dtype} takes {needed}", bytes.len());
            return Err(Error::new(ErrorKind::Shape, "array", text).with_shape(&shape).with_dtype(dtype));
        }
        if dtype == Dtype::Bool && bytes.iter().any(|&b| b > 1) {
            return Err(Error::new(ErrorKind::Format, "array", "a byte of a bool array is neither 0 nor 1"));
        }
        Self::from_checked(bytes, &shape, dtype)
    }

    fn from_checked(bytes: &[u8], shape: &[i32], dtype: Dtype) -> Result<Self> {
        Ok(Self(oxmlx_sys::Array::from_bytes(bytes, shape, dtype.code())?))
    }
}

#[cold]
fn impossible(shape: &[i32]) -> Error {
    Error::new(ErrorKind::Shape, "array", format!("no array has the shape {shape:?}")).with_shape(shape)
}

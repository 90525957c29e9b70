//! Reading values back: the logical elements in row-major order, whatever the layout in memory.

use crate::{Array, Element, Error, ErrorKind, Result, ops};

impl Array {
    /// The only value of an array of one element. Evaluates.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when there is not exactly one element, [`ErrorKind::Dtype`] when `T` is not the array's; what evaluation
    /// reports.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.size() != 1 {
            let text = format!("item needs exactly one element, shape {:?} has {}", self.shape(), self.size());
            return Err(Error::new(ErrorKind::Shape, "item", text).with_shape(self.shape()));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    /// The elements in row-major order. Evaluates; copies.
    ///
    /// ```
    /// use oxmlx::Array;
    /// let a = Array::from_slice(&[1i32, 2, 3, 4, 5, 6], (2, 3))?.transpose()?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Dtype`] when `T` is not the array's (convert with [`astype`](Self::astype)); [`ErrorKind::OutOfMemory`] when there
    /// is no room for the copy; what evaluation reports.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype::<T>("to_vec")?;
        self.eval()?;
        if let Some(copy) = self.host_copy()? {
            return copy.to_vec();
        }
        if self.0.row_contiguous()? {
            return copied(self.try_as_slice()?);
        }
        let packed = ops::contiguous(self, false)?;
        packed.eval()?;
        copied(packed.try_as_slice()?)
    }

    /// The elements where they lie, without a copy. Never evaluates.
    ///
    /// # Errors
    /// [`ErrorKind::Dtype`] when `T` is not the array's; [`ErrorKind::Shape`] when the elements do not lie in row-major order without
    /// gaps (use [`to_vec`](Self::to_vec)); [`ErrorKind::InvalidArgument`] when the array was not evaluated.
    pub fn try_as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_dtype::<T>("as_slice")?;
        let Some(bytes) = self.0.bytes()? else {
            let text = format!("the elements of shape {:?} are not contiguous in row-major order", self.shape());
            return Err(Error::new(ErrorKind::Shape, "as_slice", text).with_shape(self.shape()));
        };
        // The empty slice that stands for no memory has no alignment.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        T::cast(bytes).map_err(|e| {
            Error::new(ErrorKind::Format, "as_slice", format!("the array's memory is no slice of {}: {e}", T::DTYPE))
        })
    }

    /// A copy that the host may read, where it may not read the evaluated array itself: memory of a GPU that views hold, or that others
    /// own, must not be moved.
    pub(super) fn host_copy(&self) -> Result<Option<Self>> {
        if oxmlx_sys::storage::host_readable(&self.0)? {
            return Ok(None);
        }
        let copy = Self(oxmlx_sys::storage::copied(&self.0)?);
        copy.eval()?;
        Ok(Some(copy))
    }

    fn check_dtype<T: Element>(&self, op: &'static str) -> Result<()> {
        let dtype = self.dtype();
        if dtype == T::DTYPE {
            return Ok(());
        }
        let text = format!("the array is {dtype}, asked for as {}", T::DTYPE);
        Err(Error::new(ErrorKind::Dtype, op, text).with_dtype(dtype).with_dtype(T::DTYPE))
    }
}

/// A copy, or an error where Rust's own allocation would end the process.
fn copied<T: Element>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(values.len())
        .map_err(|e| Error::new(ErrorKind::OutOfMemory, "to_vec", format!("{} elements: {e}", values.len())))?;
    copy.extend_from_slice(values);
    Ok(copy)
}

//! Sharing arrays with code on MLX's C API (mlx-c), without a copy of the data.
//!
//! An `mlx_array` is a struct of one pointer, `ctx`, to a heap `mlx::core::array` of the same `libmlx`; null is the empty handle. Each handle
//! owns one reference, which `mlx_array_free` gives back. Both sides must be in MLX at different times only: code on the C API
//! takes no lock, so call it where no other thread uses oxmlx.
#![allow(unsafe_code)] // a foreign handle can't be checked

use std::ffi::c_void;

use oxmlx_sys::storage as sys;

use crate::{Array, Error, ErrorKind, Result};

/// `mlx_array` of MLX's C API, by its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MlxArray {
    /// The heap `mlx::core::array`; null when empty.
    pub ctx: *mut c_void,
}

const _: () = assert!(size_of::<MlxArray>() == size_of::<*mut c_void>());

impl Array {
    /// Takes a handle of MLX's C API over: its reference is this array's from now on.
    ///
    /// # Safety
    /// The handle must be empty, or come from MLX's C API or from [`into_mlx_c`](Self::into_mlx_c), in the `libmlx` that this process has
    /// loaded. It must not be used or freed afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for the empty handle.
    pub unsafe fn from_mlx_c(handle: MlxArray) -> Result<Self> {
        // SAFETY: the caller promises a live handle that is used by nobody afterwards.
        checked(handle).and_then(|ctx| Ok(Self(unsafe { sys::from_c(ctx, true) }?)))
    }

    /// Another reference to the array of a handle of MLX's C API, which stays its owner's.
    ///
    /// # Safety
    /// As for [`from_mlx_c`](Self::from_mlx_c), but that the handle stays good; nobody may assign to it or free it during the call.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for the empty handle.
    pub unsafe fn from_mlx_c_borrowed(handle: MlxArray) -> Result<Self> {
        // SAFETY: the caller promises a live handle, which is only read.
        checked(handle).and_then(|ctx| Ok(Self(unsafe { sys::from_c(ctx, false) }?)))
    }

    /// Gives the array away as a handle of MLX's C API, to be freed there (`mlx_array_free`) or brought back by
    /// [`from_mlx_c`](Self::from_mlx_c). The data are not copied.
    ///
    /// ```
    /// use oxmlx::Array;
    /// let handle = Array::vector(&[1i32, 2])?.into_mlx_c()?;
    /// // SAFETY: the handle comes from the line above and is not used again.
    /// let a = unsafe { Array::from_mlx_c(handle) }?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn into_mlx_c(self) -> Result<MlxArray> {
        Ok(MlxArray { ctx: sys::to_c(&self.0)? })
    }
}

fn checked(handle: MlxArray) -> Result<*mut c_void> {
    if handle.ctx.is_null() {
        return Err(Error::new(ErrorKind::InvalidArgument, "from_mlx_c", "the handle is empty"));
    }
    Ok(handle.ctx)
}

//! [`Array`]: a node of MLX's lazy graph.
//!
//! An array is a handle of two words: cloning it counts a reference, and nothing is computed until a value is asked for
//! ([`eval`](crate::eval), [`Array::item`], [`Array::to_vec`], `Display`). Any thread may build, evaluate, read and drop any array.
//!
//! ```
//! use oxmlx::Array;
//! let a = Array::from_slice(&[1.0f32, 2.0, 3.0], 3)?;
//! let b = (&a + &a)?;
//! assert_eq!(b.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok::<(), oxmlx::Error>(())
//! ```

mod construct;
#[cfg(feature = "ndarray")]
mod ndarray;
mod print;
mod read;

use std::fmt;

use bytemuck::TransparentWrapper;
use bytemuck::allocation::TransparentWrapperAlloc as _;
use oxmlx_sys as sys;

pub use self::print::{print_precision, set_print_precision};
use crate::{Dtype, Result};

/// A lazy, reference-counted, multi-dimensional array.
#[derive(Clone, TransparentWrapper)]
#[repr(transparent)]
pub struct Array(pub(crate) sys::Array);

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Array>();
};

impl Array {
    /// The dimensions, outermost first; empty for a scalar. Never evaluates.
    #[inline]
    pub fn shape(&self) -> &[i32] {
        self.0.shape()
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.0.shape().len()
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// The bytes that the elements take when laid out without gaps.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.0.size() * self.0.itemsize()
    }

    /// The length of one dimension, counted from the end when negative; `None` outside.
    pub fn dim(&self, axis: i32) -> Option<i32> {
        let shape = self.shape();
        let axis = if axis < 0 { axis.checked_add(i32::try_from(shape.len()).ok()?)? } else { axis };
        shape.get(usize::try_from(axis).ok()?).copied()
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> Dtype {
        // The loaded library is of the release whose dtypes these are (checked at first use), so the code is always known.
        Dtype::try_from(self.0.dtype_code()).unwrap_or(Dtype::Uint8)
    }

    /// Whether the values are there: computed, and not only given to a stream. Never evaluates.
    ///
    /// # Errors
    /// The error of the kernel that failed to compute the array.
    pub fn is_available(&self) -> Result<bool> {
        Ok(sys::runtime::is_available(&self.0)?)
    }

    /// Computes the array and waits for it. See [`eval`](crate::eval).
    ///
    /// # Errors
    /// What the kernels on the way to it report.
    pub fn eval(&self) -> Result<()> {
        Ok(sys::runtime::eval(std::slice::from_ref(&self.0))?)
    }

    /// The raw handles of a slice of arrays, as they stand.
    pub(crate) fn raw(arrays: &[Self]) -> &[sys::Array] {
        Self::peel_slice(arrays)
    }

    pub(crate) fn wrap_all(arrays: Vec<sys::Array>) -> Vec<Self> {
        Self::wrap_vec(arrays)
    }

    pub(crate) fn peel_all(arrays: Vec<Self>) -> Vec<sys::Array> {
        Self::peel_vec(arrays)
    }
}

impl From<sys::Array> for Array {
    fn from(raw: sys::Array) -> Self {
        Self(raw)
    }
}

impl From<Array> for sys::Array {
    fn from(array: Array) -> Self {
        array.0
    }
}

impl fmt::Debug for Array {
    /// Shape and dtype; never evaluates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({:?}, {})", self.shape(), self.dtype())
    }
}

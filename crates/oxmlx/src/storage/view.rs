//! [`StorageView`]: where an array's elements lie, and a share of the storage that keeps them there.
#![allow(unsafe_code)] // bytes of MLX's memory, borrowed from the view that retains them

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oxmlx_sys::storage::{Backend, Retained};

use crate::{Dtype, Element, Error, ErrorKind, Result};

/// A read-only view of an array's storage. Owned, cheap to clone, and usable on any thread.
///
/// Its pointers are good for as long as a clone of it lives. It may outlive the array, the stream and the thread that made them.
#[derive(Clone)]
pub struct StorageView(Arc<Retained>);

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<StorageView>();
};

/// Where a storage starts, by the kind of its memory. The elements start [`byte_offset`](StorageView::byte_offset) bytes behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StorageBuffer {
    /// The host's memory.
    Host(*const u8),
    /// Memory that CUDA allocated.
    Cuda {
        /// Its address on the device.
        pointer: *const c_void,
        /// The device. For shared memory, the one that MLX computes on.
        ordinal: i32,
        /// Whether the host and all devices share it.
        managed: bool,
    },
    /// An `MTLBuffer` (`id<MTLBuffer>`), shared by host and device. Not retained in Metal's sense: the view holds it.
    Metal(*const c_void),
}

/// The device whose memory a storage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorageDevice {
    /// The processor.
    Cpu,
    /// A CUDA device, by its ordinal.
    Cuda(i32),
    /// The Metal device.
    Metal,
}

impl StorageView {
    pub(super) fn new(retained: Retained) -> Self {
        Self(Arc::new(retained))
    }

    /// An identity of the storage: equal for views of arrays that share it, and never reused while a view of it lives.
    pub fn storage_id(&self) -> usize {
        self.0.facts.storage
    }

    /// Where the storage starts. The pointer is null only for an array without elements.
    pub fn buffer(&self) -> StorageBuffer {
        let facts = &self.0.facts;
        match facts.backend {
            Backend::Host => StorageBuffer::Host(facts.buffer),
            Backend::Cuda => {
                StorageBuffer::Cuda { pointer: facts.buffer.cast(), ordinal: facts.ordinal, managed: facts.managed }
            }
            Backend::Metal => StorageBuffer::Metal(facts.buffer.cast()),
        }
    }

    /// The address of the first element, on the host or on the CUDA device; `None` on Metal, where an address is no use to the device.
    pub fn data(&self) -> Option<*const u8> {
        let facts = &self.0.facts;
        match facts.backend {
            Backend::Metal => None,
            _ if facts.buffer.is_null() => Some(facts.buffer),
            _ => Some(facts.buffer.wrapping_add(facts.byte_offset)),
        }
    }

    /// The device whose memory it is.
    pub fn device(&self) -> StorageDevice {
        match self.0.facts.backend {
            Backend::Host => StorageDevice::Cpu,
            Backend::Cuda => StorageDevice::Cuda(self.0.facts.ordinal),
            Backend::Metal => StorageDevice::Metal,
        }
    }

    /// The bytes from the start of the storage to the first element.
    pub fn byte_offset(&self) -> usize {
        self.0.facts.byte_offset
    }

    /// The bytes that all elements take when laid out without gaps.
    pub fn logical_nbytes(&self) -> usize {
        self.0.array().size() * self.0.array().itemsize()
    }

    /// The bytes from the first element to the end of the last one in memory: more than
    /// [`logical_nbytes`](Self::logical_nbytes) where there are gaps, fewer for a broadcast, none for an empty array.
    pub fn storage_span_nbytes(&self) -> usize {
        self.0.facts.span_nbytes
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        Dtype::try_from(self.0.array().dtype_code()).unwrap_or(Dtype::Uint8)
    }

    /// The dimensions, outermost first; empty for a scalar.
    pub fn shape(&self) -> &[i32] {
        self.0.array().shape()
    }

    /// The distance between neighbours of each dimension, in elements; 0 for a broadcast one.
    pub fn strides(&self) -> &[i64] {
        &self.0.strides
    }

    /// Whether there are no gaps between the first element and the last.
    pub fn contiguous(&self) -> bool {
        self.0.facts.contiguous
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn row_contiguous(&self) -> bool {
        self.0.facts.row_contiguous || self.logical_nbytes() == 0
    }

    /// Whether the elements lie in column-major order without gaps.
    pub fn col_contiguous(&self) -> bool {
        self.0.facts.col_contiguous || self.logical_nbytes() == 0
    }

    /// The bytes from the first element to the end of the last, whatever the layout; `None` where the host can't read the memory.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        let facts = &self.0.facts;
        if facts.span_nbytes == 0 {
            return Some(&[]);
        }
        if facts.host.is_null() {
            return None;
        }
        // SAFETY: the storage holds `span_nbytes` bytes from here on (checked when the view was made), the array was available then,
        // and the share that `self` holds keeps MLX from freeing, reusing or writing the memory while the slice is borrowed.
        Some(unsafe { std::slice::from_raw_parts(facts.host, facts.span_nbytes) })
    }

    /// The elements in row-major order, where they lie.
    ///
    /// # Errors
    /// [`ErrorKind::Dtype`] when `T` is not the array's; [`ErrorKind::Shape`] when the elements do not lie in row-major order;
    /// [`ErrorKind::Device`] when the host can't read the memory; [`ErrorKind::Format`] for a `bool` that is neither 0 nor 1.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if !self.row_contiguous() {
            let text = format!("the elements of shape {:?} are not contiguous in row-major order", self.shape());
            return Err(Error::new(ErrorKind::Shape, OP, text).with_shape(self.shape()));
        }
        self.elements()
    }

    /// The elements of the whole span.
    fn elements<T: Element>(&self) -> Result<&[T]> {
        let dtype = self.dtype();
        if dtype != T::DTYPE {
            let text = format!("the storage is {dtype}, asked for as {}", T::DTYPE);
            return Err(Error::new(ErrorKind::Dtype, OP, text).with_dtype(dtype).with_dtype(T::DTYPE));
        }
        let Some(bytes) = self.as_bytes() else {
            return Err(Error::new(ErrorKind::Device, OP, "the host can't read memory of this device"));
        };
        if bytes.is_empty() {
            return Ok(&[]);
        }
        T::cast(bytes)
            .map_err(|e| Error::new(ErrorKind::Format, OP, format!("the memory is no slice of {}: {e}", T::DTYPE)))
    }

    /// The elements as a view of the crate `ndarray`, whatever the layout, without a copy.
    ///
    /// ```
    /// use oxmlx::{Array, ops, storage::StorageExportOptions};
    /// let a = Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?.transpose()?;
    /// a.eval()?;
    /// let view = a.storage_view(&StorageExportOptions::default().require_row_contiguous(false))?;
    /// assert_eq!(view.as_ndarray::<f32>()?, ndarray::array![[1.0f32, 3.0], [2.0, 4.0]].into_dyn());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`as_slice`](Self::as_slice), but for the layout.
    #[cfg(feature = "ndarray")]
    pub fn as_ndarray<T: Element>(&self) -> Result<ndarray::ArrayViewD<'_, T>> {
        use ndarray::ShapeBuilder as _;
        let elements = self.elements::<T>()?;
        let to_usize = |n: i64| usize::try_from(n).unwrap_or(0);
        let shape: Vec<usize> = self.shape().iter().map(|&n| to_usize(n.into())).collect();
        let mut strides: Vec<usize> = self.strides().iter().map(|&s| to_usize(s)).collect();
        if elements.is_empty() {
            strides.fill(0);
        }
        ndarray::ArrayView::from_shape(ndarray::IxDyn(&shape).strides(ndarray::IxDyn(&strides)), elements)
            .map_err(|e| Error::new(ErrorKind::Shape, OP, "ndarray does not take this layout").with_source(e))
    }
}

const OP: &str = "storage_view";

impl fmt::Debug for StorageView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageView")
            .field("buffer", &self.buffer())
            .field("byte_offset", &self.byte_offset())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .finish()
    }
}

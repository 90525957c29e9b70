//! From a view to a tensor that others consume.
#![allow(unsafe_code)] // the deleter takes back what `Box::into_raw` gave away

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::abi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, device, flags};
use super::dtype_to_dlpack;
use super::import::{LegacyTensor, Tensor};
use crate::storage::{StorageBuffer, StorageView};
use crate::{Error, ErrorKind, Result};

/// How a view is told to DLPack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DlpackOptions {
    accept_writable: bool,
    keep_managed: bool,
}

impl DlpackOptions {
    /// Accepts that the consumer of a **legacy** tensor can't be told not to write. One that writes changes every array that shares
    /// the storage, and MLX may compute with either value.
    #[must_use]
    pub fn accept_writable(mut self, accept: bool) -> Self {
        self.accept_writable = accept;
        self
    }

    /// Tells memory that CUDA's devices and the host share as what it is (`kDLCUDAManaged`), which PyTorch does not take. Without it
    /// such memory is told as the device's (`kDLCUDA`), which it is too.
    #[must_use]
    pub fn keep_managed(mut self, keep: bool) -> Self {
        self.keep_managed = keep;
        self
    }
}

/// What an exported tensor owns: the tensor itself, what it points to, and the share of the storage.
struct Exported<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _view: StorageView,
}

impl StorageView {
    /// A tensor of DLPack's version 1 over the storage, read-only. It holds a clone of this view until its deleter is called.
    ///
    /// NumPy refuses to write to what it makes of it. PyTorch has no read-only tensors and ignores the flag: do not write there.
    ///
    /// # Errors
    /// None today; a later backend may have memory that DLPack does not know ([`ErrorKind::Unsupported`]).
    pub fn to_dlpack(&self, options: &DlpackOptions) -> Result<Tensor> {
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion::WRITTEN,
            manager_ctx: ptr::null_mut(),
            deleter: Some(delete_versioned),
            flags: flags::READ_ONLY,
            dl_tensor: self.tensor(options),
        };
        let (raw, shape, strides) = self.exported(managed);
        // SAFETY: `raw` was allocated by `exported` just now, and nobody else has it.
        let managed = unsafe { &mut (*raw).managed };
        managed.manager_ctx = raw.cast();
        managed.dl_tensor.shape = shape;
        managed.dl_tensor.strides = strides;
        // SAFETY: a whole tensor, with a deleter that frees it.
        unsafe { Tensor::from_raw(managed) }
    }

    /// A tensor of the form before version 1, which can't say that it is read-only.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] unless [`DlpackOptions::accept_writable`] is set.
    pub fn to_dlpack_legacy(&self, options: &DlpackOptions) -> Result<LegacyTensor> {
        if !options.accept_writable {
            let text = "a legacy tensor can't be read-only: use to_dlpack, or accept_writable if nobody will write";
            return Err(Error::new(ErrorKind::Unsupported, "to_dlpack_legacy", text));
        }
        let managed = DLManagedTensor {
            dl_tensor: self.tensor(options),
            manager_ctx: ptr::null_mut(),
            deleter: Some(delete_legacy),
        };
        let (raw, shape, strides) = self.exported(managed);
        // SAFETY: `raw` was allocated by `exported` just now, and nobody else has it.
        let managed = unsafe { &mut (*raw).managed };
        managed.manager_ctx = raw.cast();
        managed.dl_tensor.shape = shape;
        managed.dl_tensor.strides = strides;
        // SAFETY: a whole tensor, with a deleter that frees it.
        unsafe { LegacyTensor::from_raw(managed) }
    }

    /// On the heap, with the shape and the strides where they will stay.
    fn exported<M>(&self, managed: M) -> (*mut Exported<M>, *mut i64, *mut i64) {
        let mut exported = Box::new(Exported {
            managed,
            shape: self.shape().iter().map(|&n| n.into()).collect(),
            strides: self.strides().to_vec(),
            _view: self.clone(),
        });
        let (shape, strides) = (exported.shape.as_mut_ptr(), exported.strides.as_mut_ptr());
        (Box::into_raw(exported), shape, strides)
    }

    fn tensor(&self, options: &DlpackOptions) -> DLTensor {
        let at = |device_type, device_id| DLDevice { device_type, device_id };
        // An address of the first element rather than an offset where there is one: consumers are known to ignore the offset.
        let first = self.data().unwrap_or(ptr::null()).cast::<c_void>();
        let (data, device, byte_offset) = match self.buffer() {
            StorageBuffer::Host(_) => (first, at(device::CPU, 0), 0),
            StorageBuffer::Cuda { ordinal, managed: true, .. } if options.keep_managed => {
                (first, at(device::CUDA_MANAGED, ordinal), 0)
            }
            StorageBuffer::Cuda { ordinal, .. } => (first, at(device::CUDA, ordinal), 0),
            StorageBuffer::Metal(buffer) => (buffer, at(device::METAL, 0), self.byte_offset() as u64),
        };
        DLTensor {
            data: data.cast_mut(),
            device,
            ndim: self.shape().len() as i32,
            dtype: dtype_to_dlpack(self.dtype()),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset,
        }
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: a deleter gets the tensor that it came with, whose context `to_dlpack` set.
    let exported = unsafe { (*managed).manager_ctx }.cast::<Exported<DLManagedTensorVersioned>>();
    // SAFETY: `exported` made it with `Box::into_raw`, and a consumer calls the deleter once.
    free(unsafe { Box::from_raw(exported) });
}

unsafe extern "C" fn delete_legacy(managed: *mut DLManagedTensor) {
    if managed.is_null() {
        return;
    }
    // SAFETY: a deleter gets the tensor that it came with, whose context `to_dlpack_legacy` set.
    let exported = unsafe { (*managed).manager_ctx }.cast::<Exported<DLManagedTensor>>();
    // SAFETY: `exported` made it with `Box::into_raw`, and a consumer calls the deleter once.
    free(unsafe { Box::from_raw(exported) });
}

/// Frees on behalf of foreign code, into which no panic may go.
fn free<M>(exported: Box<Exported<M>>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(exported)));
}

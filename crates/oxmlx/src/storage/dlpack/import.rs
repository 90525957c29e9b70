//! From a producer's tensor to an array over its memory.
#![allow(unsafe_code)] // foreign structs are read; what they must hold is promised where they are wrapped

use std::ptr::NonNull;
use std::slice;

use oxmlx_sys::layout::row_major;
use oxmlx_sys::storage::{Backend, Owner};

use super::abi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor, device, flags};
use super::dtype_from_dlpack;
use crate::storage::adopt::{HostMemory, Layout, over_device_memory};
use crate::storage::{Adoption, CopyReason, loaded_backend};
use crate::{Array, Dtype, Error, ErrorKind, Result};

const OP: &str = "from_dlpack";

macro_rules! managed {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $form:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(NonNull<$raw>);

        // SAFETY: DLPack's contract lets any thread read the tensor and call its deleter.
        unsafe impl Send for $name {}

        impl $name {
            #[doc = concat!("Takes over a producer's ", $form, " tensor.")]
            ///
            /// # Safety
            /// The pointer must be to a tensor that was made by DLPack's rules and that nobody else frees. The memory must be readable on its
            /// device, ready on every stream, and unchanged by anybody until the deleter is called. An array over memory of a CUDA device
            /// must not be read by operations on the CPU, whose pointers it is not: copy it first, on the GPU.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidArgument`] for the null pointer.
            pub unsafe fn from_raw(tensor: *mut $raw) -> Result<Self> {
                let tensor = NonNull::new(tensor);
                tensor.map(Self).ok_or_else(|| Error::new(ErrorKind::InvalidArgument, OP, "the tensor is null"))
            }

            /// Gives the tensor away, to be freed by its deleter.
            pub fn into_raw(self) -> *mut $raw {
                let raw = self.0.as_ptr();
                std::mem::forget(self);
                raw
            }

            /// The tensor.
            pub fn as_raw(&self) -> &$raw {
                // SAFETY: promised in `from_raw`, and `self` is its owner.
                unsafe { self.0.as_ref() }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(deleter) = self.as_raw().deleter {
                    // SAFETY: the owner's only call, with the tensor that the deleter belongs to.
                    unsafe { deleter(self.0.as_ptr()) }
                }
            }
        }
    };
}

managed! {
    /// A tensor with its deleter, version 1 and up. Dropping it calls the deleter.
    Tensor, DLManagedTensorVersioned, "versioned"
}

managed! {
    /// A tensor with its deleter, before version 1. Dropping it calls the deleter.
    LegacyTensor, DLManagedTensor, "legacy"
}

impl Tensor {
    /// Whether the producer forbids writing.
    pub fn is_read_only(&self) -> bool {
        self.as_raw().flags & flags::READ_ONLY != 0
    }
}

impl Array {
    /// An array over a producer's tensor, without a copy where the device can use the memory as it is. The deleter is called when the
    /// last array over it is gone; at once when the memory was copied, and on an error.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for another major version, and for strides that run backwards in memory of a GPU; [`ErrorKind::Dtype`]
    /// for a type that MLX has not; [`ErrorKind::Shape`] for dimensions that it has not; [`ErrorKind::Device`] for memory of a device that
    /// the loaded library can't use; [`ErrorKind::Format`] for a null pointer, or a `bool` that is neither 0 nor 1.
    pub fn from_dlpack(tensor: Tensor) -> Result<(Self, Adoption)> {
        let version = tensor.as_raw().version;
        if version.major != 1 {
            let text = format!("a tensor of DLPack {}.{}; this release reads 1", version.major, version.minor);
            return Err(Error::new(ErrorKind::Unsupported, OP, text));
        }
        let described = tensor.as_raw().dl_tensor;
        // SAFETY: promised in `Tensor::from_raw`; the tensor goes along as the owner.
        unsafe { imported(&described, Owner::new(tensor)) }
    }

    /// As [`from_dlpack`](Self::from_dlpack), for a tensor before version 1.
    ///
    /// # Errors
    /// As [`from_dlpack`](Self::from_dlpack), but for the version.
    pub fn from_dlpack_legacy(tensor: LegacyTensor) -> Result<(Self, Adoption)> {
        let described = tensor.as_raw().dl_tensor;
        // SAFETY: promised in `LegacyTensor::from_raw`; the tensor goes along as the owner.
        unsafe { imported(&described, Owner::new(tensor)) }
    }
}

/// # Safety
/// The tensor must be by DLPack's rules until `owner` is dropped.
unsafe fn imported(tensor: &DLTensor, owner: Owner) -> Result<(Array, Adoption)> {
    let Some(dtype) = dtype_from_dlpack(tensor.dtype) else {
        let t = tensor.dtype;
        let text = format!("MLX has no dtype of DLPack's code {}, {} bits, {} lanes", t.code, t.bits, t.lanes);
        return Err(Error::new(ErrorKind::Dtype, OP, text));
    };
    let ndim = usize::try_from(tensor.ndim)
        .map_err(|_| Error::new(ErrorKind::Shape, OP, format!("{} dimensions", tensor.ndim)))?;
    if ndim > 0 && tensor.shape.is_null() {
        return Err(Error::new(ErrorKind::Format, OP, "the tensor has no shape"));
    }
    let given: &[i64] = match ndim {
        0 => &[],
        // SAFETY: DLPack gives `ndim` dimensions, and the pointer is not null.
        _ => unsafe { slice::from_raw_parts(tensor.shape, ndim) },
    };
    let shape: Option<Vec<i32>> = given.iter().map(|&n| i32::try_from(n).ok().filter(|&n| n >= 0)).collect();
    let Some(shape) = shape else {
        return Err(Error::new(ErrorKind::Shape, OP, format!("MLX has no dimensions like {given:?}")));
    };
    let strides = match ndim > 0 && !tensor.strides.is_null() {
        // SAFETY: DLPack gives `ndim` strides where the pointer is not null.
        true => unsafe { slice::from_raw_parts(tensor.strides, ndim) }.to_vec(),
        false => row_major(&shape),
    };
    let layout = Layout { shape: &shape, strides: &strides, dtype };
    if shape.contains(&0) {
        return Ok((Array::from_bytes(&[], &shape, dtype)?, Adoption::Copied(CopyReason::Empty)));
    }
    if tensor.data.is_null() {
        return Err(Error::new(ErrorKind::Format, OP, "the tensor has elements and no memory").with_shape(&shape));
    }
    let reach =
        layout.reach().filter(|&(below, above)| below.checked_add(above).is_some_and(|n| n <= isize::MAX as usize));
    let (Some((below, above)), Ok(offset)) = (reach, usize::try_from(tensor.byte_offset)) else {
        let text = format!("shape {shape:?} with strides {strides:?} reaches beyond any memory");
        return Err(Error::new(ErrorKind::Shape, OP, text).with_shape(&shape));
    };

    let backend = loaded_backend()?;
    match (tensor.device.device_type, backend) {
        (device::CPU | device::CUDA_HOST, _) | (device::CUDA_MANAGED, Backend::Host) => {
            let start = tensor.data.cast::<u8>().wrapping_add(offset).wrapping_sub(below);
            // SAFETY: the elements that shape and strides reach are readable by DLPack's rules, until the owner is dropped.
            let memory = unsafe { HostMemory::new(start, below + above, false, owner) }?;
            memory.array(below, &layout, OP)
        }
        (device::CUDA | device::CUDA_MANAGED, Backend::Cuda) | (device::METAL, Backend::Metal) => {
            // SAFETY: as above, on the device that the tensor names.
            unsafe { on_device(tensor, offset, below, &layout, &owner) }
        }
        (other, _) => {
            let text = format!(
                "memory of DLPack's device {other}:{}, which the loaded MLX library ({backend:?}) can't use",
                tensor.device.device_id
            );
            Err(Error::new(ErrorKind::Device, OP, text))
        }
    }
}

/// # Safety
/// As for [`imported`]; the device must be one of the loaded library's, and the reach have been checked.
unsafe fn on_device(
    tensor: &DLTensor,
    offset: usize,
    below: usize,
    layout: &Layout<'_>,
    owner: &Owner,
) -> Result<(Array, Adoption)> {
    if below > 0 {
        let text = format!("strides {:?} run backwards: copy the tensor first", layout.strides);
        return Err(Error::new(ErrorKind::Unsupported, OP, text).with_shape(layout.shape));
    }
    let metal = tensor.device.device_type == device::METAL;
    let data = tensor.data.cast::<u8>().cast_const();
    let align = if layout.dtype == Dtype::Complex64 { 4 } else { layout.dtype.size() };
    if !(if metal { offset } else { (data as usize).wrapping_add(offset) }).is_multiple_of(align) {
        let text = format!("the first element is not aligned for {}: copy the tensor first", layout.dtype);
        return Err(Error::new(ErrorKind::Unsupported, OP, text).with_dtype(layout.dtype));
    }
    let managed = tensor.device.device_type == device::CUDA_MANAGED;
    let start = if metal { data } else { data.wrapping_add(offset) };
    // SAFETY: the caller promises the memory; the reach was checked, and no stride that counts is negative.
    let made = unsafe {
        over_device_memory(
            start,
            if metal { offset } else { 0 },
            tensor.device.device_id,
            managed || metal,
            owner,
            layout,
        )
    }?;
    Ok((made, Adoption::Adopted))
}

//! The structs of `dlpack.h`, by their layout: version 1 and the legacy form.

use std::ffi::c_void;

/// The version of the layout: consumers refuse another major one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// The same for layouts that fit each other.
    pub major: u32,
    /// Later ones know more devices and types.
    pub minor: u32,
}

impl DLPackVersion {
    /// What oxmlx writes.
    pub const WRITTEN: Self = Self { major: 1, minor: 0 };
}

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDevice {
    /// One of [`device`].
    pub device_type: i32,
    /// The ordinal; 0 on the host.
    pub device_id: i32,
}

/// Values of [`DLDevice::device_type`].
pub mod device {
    /// The host.
    pub const CPU: i32 = 1;
    /// A CUDA device.
    pub const CUDA: i32 = 2;
    /// Pinned host memory of CUDA.
    pub const CUDA_HOST: i32 = 3;
    /// A Metal buffer.
    pub const METAL: i32 = 8;
    /// Memory that CUDA's devices and the host share.
    pub const CUDA_MANAGED: i32 = 13;
}

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    /// One of [`type_code`].
    pub code: u8,
    /// Of one lane.
    pub bits: u8,
    /// 1 for all but vector types.
    pub lanes: u16,
}

/// Values of [`DLDataType::code`].
pub mod type_code {
    /// Signed integers.
    pub const INT: u8 = 0;
    /// Unsigned integers.
    pub const UINT: u8 = 1;
    /// IEEE floating point numbers.
    pub const FLOAT: u8 = 2;
    /// Brain floating point numbers.
    pub const BFLOAT: u8 = 4;
    /// Complex numbers of two floats.
    pub const COMPLEX: u8 = 5;
    /// Booleans of one byte.
    pub const BOOL: u8 = 6;
}

/// Bits of [`DLManagedTensorVersioned::flags`].
pub mod flags {
    /// The consumer must not write.
    pub const READ_ONLY: u64 = 1;
    /// The producer made a copy for this consumer.
    pub const IS_COPIED: u64 = 2;
}

/// A tensor in memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// The memory; the `MTLBuffer` on Metal.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// `ndim` dimensions.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null for row-major order without gaps.
    pub strides: *mut i64,
    /// From `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor with what frees it, version 1 and up.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// First, so that any version can be told.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// To be called once, from any thread; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// See [`flags`].
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// A tensor with what frees it, before version 1: without flags.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// To be called once, from any thread; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The numbers are those that a C compiler gives for `dlpack.h` 1.0 on 64-bit systems.
    #[test]
    fn layouts_are_those_of_the_c_header() {
        assert_eq!((size_of::<DLDevice>(), size_of::<DLDataType>(), size_of::<DLPackVersion>()), (8, 4, 8));
        assert_eq!(size_of::<DLTensor>(), 48);
        assert_eq!(
            [
                offset_of!(DLTensor, data),
                offset_of!(DLTensor, device),
                offset_of!(DLTensor, ndim),
                offset_of!(DLTensor, dtype),
                offset_of!(DLTensor, shape),
                offset_of!(DLTensor, strides),
                offset_of!(DLTensor, byte_offset),
            ],
            [0, 8, 16, 20, 24, 32, 40]
        );
        assert_eq!(size_of::<DLManagedTensorVersioned>(), 80);
        assert_eq!(
            [
                offset_of!(DLManagedTensorVersioned, version),
                offset_of!(DLManagedTensorVersioned, manager_ctx),
                offset_of!(DLManagedTensorVersioned, deleter),
                offset_of!(DLManagedTensorVersioned, flags),
                offset_of!(DLManagedTensorVersioned, dl_tensor),
            ],
            [0, 8, 16, 24, 32]
        );
        assert_eq!(size_of::<DLManagedTensor>(), 64);
        assert_eq!(
            [
                offset_of!(DLManagedTensor, dl_tensor),
                offset_of!(DLManagedTensor, manager_ctx),
                offset_of!(DLManagedTensor, deleter)
            ],
            [0, 48, 56]
        );
    }
}

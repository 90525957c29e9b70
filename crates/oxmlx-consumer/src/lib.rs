//! A C library over oxmlx for the tests: arrays as handles, out and in by DLPack, and as handles of MLX's C API.
//!
//! The scripts in `tests/python/` drive it from NumPy and PyTorch, the program in `tests/mlx_c/` from C. A function that fails gives null
//! or -1, and [`oxc_last_error`] tells why.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr;

use oxmlx::storage::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DlpackOptions, LegacyTensor, Tensor};
use oxmlx::storage::{Adoption, MlxArray, StorageExportOptions, StorageView};
use oxmlx::{Array, Dtype, ops};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

fn noted<T>(outcome: Outcome<T>, failed: T) -> T {
    outcome.unwrap_or_else(|error| {
        LAST_ERROR.set(CString::new(error.to_string().replace('\0', " ")).unwrap_or_default());
        failed
    })
}

fn handle(outcome: Outcome<Array>) -> *mut Array {
    noted(outcome.map(|a| Box::into_raw(Box::new(a))), ptr::null_mut())
}

fn view(a: &Array) -> Outcome<StorageView> {
    Ok(a.storage_view(&StorageExportOptions::default().wait_until_available(true).require_row_contiguous(false))?)
}

fn dtype_of(code: c_int) -> Outcome<Dtype> {
    Dtype::try_from(u8::try_from(code)?).map_err(Into::into)
}

/// What the last function that failed on this thread had to say. Good until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn oxc_last_error() -> *const c_char {
    LAST_ERROR.with_borrow(|text| text.as_ptr())
}

/// 0 where the loaded library has no GPU, else how many there are; -1 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn oxc_gpu_count() -> c_int {
    noted(oxmlx::Device::Gpu.count().map(|n| n as c_int).map_err(Into::into), -1)
}

/// An array of `ndim` dimensions that holds a copy of `data`; `dtype` counts MLX's dtypes from `bool_` on.
///
/// # Safety
/// `shape` must point to `ndim` dimensions, `data` to the elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_new(data: *const u8, shape: *const i32, ndim: usize, dtype: c_int) -> *mut Array {
    let made = || {
        let dtype = dtype_of(dtype)?;
        // SAFETY: promised by the caller; a null pointer stands for no dimensions.
        let shape = if ndim == 0 { &[] } else { unsafe { std::slice::from_raw_parts(shape, ndim) } };
        let nbytes = shape.iter().map(|&n| n as usize).product::<usize>() * dtype.size();
        // SAFETY: promised by the caller.
        let bytes = if nbytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, nbytes) } };
        Ok(Array::from_bytes(bytes, shape, dtype)?)
    };
    handle(made())
}

/// Frees a handle.
///
/// # Safety
/// `a` must be a handle of this library, not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_free(a: *mut Array) {
    if !a.is_null() {
        // SAFETY: made by `Box::into_raw` in `handle`.
        drop(unsafe { Box::from_raw(a) });
    }
}

macro_rules! derived {
    ($($(#[$doc:meta])* $name:ident => |$a:ident| $body:expr;)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `a` must be a live handle of this library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(a: *const Array) -> *mut Array {
            // SAFETY: promised by the caller.
            let $a = unsafe { &*a };
            handle((|| {
                let made = $body?;
                made.eval()?;
                Ok(made)
            })())
        }
    )+};
}

derived! {
    /// `a` with its dimensions the other way round, over the same memory.
    oxc_transpose => |a| a.transpose();
    /// All but the first of the outermost dimension, over the same memory.
    oxc_tail => |a| {
        let mut start = vec![0; a.ndim()];
        if let Some(first) = start.first_mut() {
            *first = 1;
        }
        ops::slice(a, &start, a.shape(), &vec![1; a.ndim()])
    };
    /// `a + a`, computed on the default device.
    oxc_double => |a| ops::add(a, a);
}

/// The address of the first element on its device; 0 on an error.
///
/// # Safety
/// `a` must be a live handle of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_data(a: *const Array) -> usize {
    // SAFETY: promised by the caller.
    let a = unsafe { &*a };
    noted(view(a).and_then(|view| Ok(view.data().ok_or("no address on this device")? as usize)), 0)
}

/// Writes the elements in row-major order to `out`; 0, or -1 on an error.
///
/// # Safety
/// `a` must be a live handle of this library, and `out` have room for its elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_read(a: *const Array, out: *mut u8) -> c_int {
    // SAFETY: promised by the caller.
    let a = unsafe { &*a };
    let read = || {
        // As integers of the elements' size: every dtype has a view as one, but for bool, which has one as bytes.
        let as_bits = match a.dtype().size() {
            1 => Dtype::Uint8,
            2 => Dtype::Uint16,
            4 => Dtype::Uint32,
            _ => Dtype::Uint64,
        };
        let bits = ops::view(a, as_bits)?;
        macro_rules! write {
            ($($dtype:ident $ty:ty),+) => {
                match as_bits {
                    $(Dtype::$dtype => {
                        let values = bits.to_vec::<$ty>()?;
                        // SAFETY: promised by the caller.
                        unsafe { ptr::copy_nonoverlapping(values.as_ptr().cast(), out, size_of_val(&values[..])) }
                    })+
                    _ => {}
                }
            };
        }
        write!(Uint8 u8, Uint16 u16, Uint32 u32, Uint64 u64);
        Ok(0)
    };
    noted(read(), -1)
}

/// A tensor of DLPack's version 1 over the array; null on an error.
///
/// # Safety
/// `a` must be a live handle of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_export(a: *const Array) -> *mut DLManagedTensorVersioned {
    // SAFETY: promised by the caller.
    let a = unsafe { &*a };
    let made = view(a).and_then(|view| Ok(view.to_dlpack(&DlpackOptions::default())?.into_raw()));
    noted(made, ptr::null_mut())
}

/// A tensor of the form before version 1; null on an error, as without `accept_writable`.
///
/// # Safety
/// `a` must be a live handle of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_export_legacy(a: *const Array, accept_writable: bool) -> *mut DLManagedTensor {
    // SAFETY: promised by the caller.
    let a = unsafe { &*a };
    let options = DlpackOptions::default().accept_writable(accept_writable);
    noted(view(a).and_then(|view| Ok(view.to_dlpack_legacy(&options)?.into_raw())), ptr::null_mut())
}

fn imported(outcome: oxmlx::Result<(Array, Adoption)>, adopted: *mut bool) -> *mut Array {
    handle(outcome.map_err(Into::into).map(|(a, adoption)| {
        if !adopted.is_null() {
            // SAFETY: the callers' callers promise that it may be written.
            unsafe { *adopted = adoption == Adoption::Adopted }
        }
        a
    }))
}

/// An array over a tensor, which is taken over; `adopted` tells whether it was not copied.
///
/// # Safety
/// `tensor` must be by DLPack's rules, and `adopted` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_import(tensor: *mut DLManagedTensorVersioned, adopted: *mut bool) -> *mut Array {
    // SAFETY: promised by the caller.
    imported(unsafe { Tensor::from_raw(tensor) }.and_then(Array::from_dlpack), adopted)
}

/// As [`oxc_import`], for a tensor of the form before version 1.
///
/// # Safety
/// As for [`oxc_import`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_import_legacy(tensor: *mut DLManagedTensor, adopted: *mut bool) -> *mut Array {
    // SAFETY: promised by the caller.
    imported(unsafe { LegacyTensor::from_raw(tensor) }.and_then(Array::from_dlpack_legacy), adopted)
}

/// The array as a handle of MLX's C API; the handle of this library is freed. Empty on an error.
///
/// # Safety
/// `a` must be a live handle of this library, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_into_mlx_c(a: *mut Array) -> MlxArray {
    // SAFETY: made by `Box::into_raw` in `handle`.
    let a = *unsafe { Box::from_raw(a) };
    noted(a.into_mlx_c().map_err(Into::into), MlxArray { ctx: ptr::null_mut() })
}

/// The array of a handle of MLX's C API, which is taken over, or with `borrow` stays its owner's.
///
/// # Safety
/// `array` must be a live handle of the C API, and without `borrow` is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxc_from_mlx_c(array: MlxArray, borrow: bool) -> *mut Array {
    let made = match borrow {
        // SAFETY: promised by the caller.
        true => unsafe { Array::from_mlx_c_borrowed(array) },
        // SAFETY: promised by the caller.
        false => unsafe { Array::from_mlx_c(array) },
    };
    handle(made.map_err(Into::into))
}

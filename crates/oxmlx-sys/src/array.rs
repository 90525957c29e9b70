//! The handle: `mlx::core::array` held by value.
//!
//! `mlx::core::array` is one `std::shared_ptr`, two pointers that may be moved by copying their bytes (`cpp/array_handle.h` says why
//! and asserts it). [`Array`] is those two pointers: no heap object stands between Rust and MLX, and `&[Array]` is a C++ span as
//! it stands. It is the only owner of a reference: `Drop` runs the C++ destructor, `Clone` the copy constructor.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;

use cxx::{ExternType, type_id};

use crate::call::call;
use crate::{Result, evaluation, lock};

/// An MLX array handle: a reference-counted node of the lazy graph.
///
/// Immutable facts ([`size`](Self::size), [`shape`](Self::shape), [`dtype_code`](Self::dtype_code)) are read without the lock;
/// everything else takes it.
#[repr(C)]
pub struct Array {
    desc: *mut c_void,
    control: *mut c_void,
}

// SAFETY: `Array` has the size and alignment of `mlx::core::array` (asserted on the C++ side against 16 and 8, and below), and
// moving its bytes is a valid move of the C++ object (`rust::IsRelocatable` in `cpp/array_handle.h`).
unsafe impl ExternType for Array {
    type Id = type_id!("mlx::core::array");
    type Kind = cxx::kind::Trivial;
}

const _: () = assert!(size_of::<Array>() == 16 && align_of::<Array>() == 8);

// SAFETY: the reference count is atomic in every program that links libmlx (it starts threads), and every access to what the
// handle points at goes through `call` or `Drop`, which hold the process-wide lock. The exceptions are size, shape and dtype, which
// MLX writes once, before the handle exists. `threads_build_evaluate_and_drop` in the crate `oxmlx` exercises it.
unsafe impl Send for Array {}

// SAFETY: as for `Send`; a shared handle gives no access that does not take the lock.
unsafe impl Sync for Array {}

#[cxx::bridge(namespace = "oxmlx::array")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    unsafe extern "C++" {
        include!("array.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = super::Array;

        // These five have noexcept bodies: a reference count and constant fields.
        fn clone(a: &Array) -> Array;
        unsafe fn drop_in_place(a: *mut Array);
        fn size(a: &Array) -> usize;
        fn shape(a: &Array) -> &[i32];
        fn dtype(a: &Array) -> u8;
        fn itemsize(a: &Array) -> usize;
        fn id(a: &Array) -> usize;

        fn from_bytes(data: &[u8], shape: &[i32], dtype: u8) -> Result<Array>;
        fn status(a: &Array) -> Result<u8>;
        fn is_tracer(a: &Array) -> Result<bool>;
        fn row_contiguous(a: &Array) -> Result<bool>;
        fn strides(a: &Array) -> Result<&[i64]>;
        fn data(a: &Array) -> Result<*const u8>;
        fn to_text(a: &Array) -> Result<String>;
    }

    impl Vec<Array> {}
}

/// How far the computation of an array has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A lazy node: nothing was computed yet.
    Unscheduled,
    /// Given to its stream; the values may not be there yet.
    Evaluated,
    /// The values are there.
    Available,
}

impl Array {
    /// An array of the dtype with this code and of `shape`, holding a copy of `data` (row-major, native byte order).
    ///
    /// # Errors
    /// `InvalidArgument` when the length of `data` is not what shape and dtype need.
    pub fn from_bytes(data: &[u8], shape: &[i32], dtype_code: u8) -> Result<Self> {
        call("array", || ffi::from_bytes(data, shape, dtype_code))
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        ffi::size(self)
    }

    /// The bytes of one element.
    #[inline]
    pub fn itemsize(&self) -> usize {
        ffi::itemsize(self)
    }

    /// The shape; empty for a scalar.
    #[inline]
    pub fn shape(&self) -> &[i32] {
        ffi::shape(self)
    }

    /// The dtype's position in MLX's `Dtype::Val`.
    #[inline]
    pub fn dtype_code(&self) -> u8 {
        ffi::dtype(self)
    }

    /// An identity of the node: equal for clones of one handle, and never reused while one of them lives.
    #[inline]
    pub fn id(&self) -> usize {
        ffi::id(self)
    }

    /// How far the computation has come.
    ///
    /// # Errors
    /// The error of the kernel that failed to compute the array.
    pub fn status(&self) -> Result<Status> {
        evaluation::is_available(self)?;
        self.progress()
    }

    /// [`status`](Self::status), whatever came out of the computation.
    pub(crate) fn progress(&self) -> Result<Status> {
        Ok(match call("status", || ffi::status(self))? {
            0 => Status::Unscheduled,
            1 => Status::Evaluated,
            _ => Status::Available,
        })
    }

    /// Whether the array is a placeholder of a running transform.
    ///
    /// # Errors
    /// None beyond those of every entry.
    pub fn is_tracer(&self) -> Result<bool> {
        call("is_tracer", || ffi::is_tracer(self))
    }

    /// Whether an evaluated array's elements lie in row-major order without gaps.
    ///
    /// # Errors
    /// None beyond those of every entry.
    pub fn row_contiguous(&self) -> Result<bool> {
        call("flags", || ffi::row_contiguous(self))
    }

    /// The strides of an evaluated array, in elements.
    ///
    /// # Errors
    /// None beyond those of every entry.
    pub fn strides(&self) -> Result<&[i64]> {
        call("strides", || ffi::strides(self))
    }

    /// The address of the first element of an available array; null when it has none.
    ///
    /// # Errors
    /// `InvalidArgument` when the array is not available.
    pub fn data(&self) -> Result<*const u8> {
        call("data", || ffi::data(self))
    }

    /// The elements of an available array as they lie in memory; `None` when they do not lie in row-major order without gaps.
    ///
    /// # Errors
    /// `InvalidArgument` when the array is not available.
    pub fn bytes(&self) -> Result<Option<&[u8]>> {
        let _guard = lock::enter()?;
        let data = self.data()?;
        if data.is_null() {
            return Ok(Some(&[]));
        }
        if !self.row_contiguous()? {
            return Ok(None);
        }
        // SAFETY: the array is available and row-contiguous, so that its size times its item size bytes from `data` on are
        // initialised. They stay as they are while `self` is borrowed: MLX frees or reuses a buffer only when no handle of it is
        // left, and writes into one only when the writer's is the only one.
        Ok(Some(unsafe { std::slice::from_raw_parts(data, self.size() * self.itemsize()) }))
    }

    /// MLX's own printed form. Evaluates the array.
    ///
    /// # Errors
    /// What evaluation throws.
    pub fn to_text(&self) -> Result<String> {
        evaluation::eval(std::slice::from_ref(self))?;
        call("print", || ffi::to_text(self))
    }
}

impl Clone for Array {
    fn clone(&self) -> Self {
        // No lock: the copy constructor is one atomic increment of a count that `self` keeps above zero.
        ffi::clone(self)
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if self.desc.is_null() {
            return;
        }
        let orphan = || Orphan(ManuallyDrop::new(Self { desc: self.desc, control: self.control }));
        // Inside another handle's end: a node whose closure held this one. Freeing it here would go as deep as such nodes are chained.
        if FREEING.get() {
            return lock::put_aside(orphan());
        }
        let Ok(_guard) = lock::enter_to_free() else {
            return lock::put_aside(orphan());
        };
        FREEING.set(true);
        // SAFETY: `self` is a live C++ array that nobody uses after `drop`; the guard holds the lock.
        unsafe { ffi::drop_in_place(self) };
        while let Some(orphans) = lock::take_put_aside() {
            for mut orphan in orphans.into_iter().map(ManuallyDrop::new) {
                // SAFETY: the handle was put aside alive, and is freed here once: neither wrapper drops it.
                unsafe { ffi::drop_in_place(&mut *orphan.0) };
            }
        }
        FREEING.set(false);
    }
}

thread_local! {
    /// Whether this thread is freeing an array.
    static FREEING: Cell<bool> = const { Cell::new(false) };
}

/// A handle that was dropped on a thread that must not enter MLX; freed under the lock by a later entry.
pub(crate) struct Orphan(ManuallyDrop<Array>);

impl Drop for Orphan {
    fn drop(&mut self) {
        // SAFETY: the handle was moved in by `Array::drop`, which runs once, and is dropped here once.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}

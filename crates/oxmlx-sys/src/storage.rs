//! Where an array's elements lie, arrays over memory that others own, and the handles of MLX's C API.
//!
//! The rules are in `include/oxmlx/storage.h`, which C++ can use without this crate; here they are under the lock. A retained
//! [`Array`] outside any graph is what keeps storage alive, so that dropping it follows the rules of every handle.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use crate::call::call;
use crate::closure::quietly;
use crate::{Array, Result, evaluation, lock};

#[cxx::bridge(namespace = "oxmlx::storage")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    /// A view's facts as they cross the bridge.
    struct Facts {
        status: u8,
        backend: u8,
        ordinal: i32,
        managed: bool,
        storage: usize,
        buffer: usize,
        host: usize,
        byte_offset: usize,
        span_nbytes: usize,
        contiguous: bool,
        row_contiguous: bool,
        col_contiguous: bool,
    }

    extern "Rust" {
        type Owner;
    }

    unsafe extern "C++" {
        include!("storage.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        fn facts(a: &Array, require_row_contiguous: bool, backend: u8) -> Result<Facts>;
        fn metal_facts(a: &Array, require_row_contiguous: bool) -> Result<Facts>;
        fn loaded_backend() -> Result<u8>;
        fn retain(a: &Array) -> Result<Array>;
        fn pin(storage: usize, more: bool) -> Result<()>;
        fn host_readable(a: &Array) -> Result<bool>;
        fn copied(a: &Array) -> Result<Array>;
        fn adopt_host(data: usize, nbytes: usize, whole_pages: bool, owner: Box<Owner>) -> Result<Vec<Array>>;
        fn adopt_device(
            data: usize,
            nbytes: usize,
            ordinal: i32,
            host_visible: bool,
            owner: Box<Owner>,
        ) -> Result<Array>;
        fn over(memory: &Array, offset: usize, shape: &[i32], strides: &[i64], dtype: u8) -> Result<Array>;
        fn to_c(a: &Array) -> Result<usize>;
        fn from_c(ctx: usize, take: bool) -> Result<Array>;
        fn shifted_for_test(a: &Array, bytes: i64) -> Result<Array>;
        fn without_storage_for_test(a: &Array) -> Result<Array>;
    }
}

/// Why there is a view, or none: `StorageExportStatus` of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is one.
    Success,
    /// A Metal view was asked for, and the loaded library has no Metal.
    MetalNotAvailable,
    /// The values are not there yet.
    ArrayNotAvailable,
    /// The array has elements and no memory.
    NoStorage,
    /// The memory is of another backend than the one asked for, or of one that is not known.
    UnsupportedBackend,
    /// Not row-contiguous where that is required, or strides that run backwards.
    UnsupportedLayout,
    /// The elements do not lie within the storage.
    InvalidOffset,
}

/// What the memory of the loaded library is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The host's.
    Host,
    /// CUDA's: of a device, or shared by devices and the host.
    Cuda,
    /// Metal's buffers.
    Metal,
}

impl Backend {
    fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Host,
            1 => Self::Cuda,
            _ => Self::Metal,
        }
    }
}

/// Where an array's elements lie.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The kind of memory.
    pub backend: Backend,
    /// The CUDA device; 0 elsewhere.
    pub ordinal: i32,
    /// Whether CUDA memory is shared by devices and the host.
    pub managed: bool,
    /// Equal for views of one storage.
    pub storage: usize,
    /// Where the storage starts, or the `MTLBuffer`; null for an array without memory.
    pub buffer: *const u8,
    /// The first element as the host reads it; null where it can't.
    pub host: *const u8,
    /// From the start of the storage to the first element.
    pub byte_offset: usize,
    /// From the first element to the end of the last one.
    pub span_nbytes: usize,
    /// No gaps in the memory between the first and the last element.
    pub contiguous: bool,
    /// Row-major order without gaps.
    pub row_contiguous: bool,
    /// Column-major order without gaps.
    pub col_contiguous: bool,
}

// SAFETY: the pointers are told, not followed here; who follows them must hold the storage, as for any raw pointer.
unsafe impl Send for Facts {}

// SAFETY: as for `Send`.
unsafe impl Sync for Facts {}

fn told(raw: ffi::Facts) -> std::result::Result<Facts, Status> {
    let status = match raw.status {
        0 => Status::Success,
        1 => Status::MetalNotAvailable,
        2 => Status::ArrayNotAvailable,
        3 => Status::NoStorage,
        5 => Status::UnsupportedLayout,
        6 => Status::InvalidOffset,
        _ => Status::UnsupportedBackend,
    };
    if status != Status::Success {
        return Err(status);
    }
    Ok(Facts {
        backend: Backend::from_code(raw.backend),
        ordinal: raw.ordinal,
        managed: raw.managed,
        storage: raw.storage,
        buffer: raw.buffer as *const u8,
        host: raw.host as *const u8,
        byte_offset: raw.byte_offset,
        span_nbytes: raw.span_nbytes,
        contiguous: raw.contiguous,
        row_contiguous: raw.row_contiguous,
        col_contiguous: raw.col_contiguous,
    })
}

/// A share of an array's storage, with what is known of it. Dropping it gives the share back.
pub struct Retained {
    /// Where the elements lie.
    pub facts: Facts,
    /// The distance between neighbours of each dimension, in elements.
    pub strides: Box<[i64]>,
    array: Array,
}

impl Retained {
    /// The array outside any graph that holds the storage, of the same shape, strides and dtype.
    pub fn array(&self) -> &Array {
        &self.array
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        if self.facts.backend == Backend::Cuda {
            // Not through `call`: a share may be dropped on a thread that must not enter MLX. The table has a lock of its own, and
            // taking one from a count can't fail.
            let _ = ffi::pin(self.facts.storage, false);
        }
    }
}

/// What the outside asks of a view.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Refuse what is not row-contiguous.
    pub row_contiguous: bool,
    /// Refuse other memory than this; any when not set.
    pub backend: Option<Backend>,
    /// Ask as for a Metal view.
    pub metal: bool,
}

/// A share of the storage of an array whose values are there. Never evaluates, copies or waits.
///
/// # Errors
/// The error of the kernel that failed to compute the array. The status is the inner `Err`.
pub fn retain(a: &Array, wanted: Wanted) -> Result<std::result::Result<Retained, Status>> {
    // One entry: the storage must not change between the look and the share.
    let _guard = lock::enter()?;
    let backend = wanted.backend.map_or(u8::MAX, |b| match b {
        Backend::Host => 0,
        Backend::Cuda => 1,
        Backend::Metal => 2,
    });
    // Asked here and not left to the header: a failed array counts as available for MLX, and only we know of the failure.
    if (!wanted.metal || loaded_backend()? == Backend::Metal) && !evaluation::is_available(a)? {
        return Ok(Err(Status::ArrayNotAvailable));
    }
    let facts = call("storage_view", || match wanted.metal {
        true => ffi::metal_facts(a, wanted.row_contiguous),
        false => ffi::facts(a, wanted.row_contiguous, backend),
    })?;
    let facts = match told(facts) {
        Ok(facts) => facts,
        Err(status) => return Ok(Err(status)),
    };
    let array = call("storage_view", || ffi::retain(a))?;
    if facts.backend == Backend::Cuda {
        call("storage_view", || ffi::pin(facts.storage, true))?;
    }
    let strides = array.strides()?.into();
    Ok(Ok(Retained { facts, strides, array }))
}

/// What the memory of the loaded library is.
///
/// # Errors
/// Those of every entry.
pub fn loaded_backend() -> Result<Backend> {
    Ok(Backend::from_code(call("storage", ffi::loaded_backend)?))
}

/// Whether the host may read an available array where it lies: not when it is memory of a GPU that views hold, or that others own.
///
/// # Errors
/// Those of every entry.
pub fn host_readable(a: &Array) -> Result<bool> {
    call("storage", || ffi::host_readable(a))
}

/// The elements in memory of their own, written on the default device. Lazy.
///
/// # Errors
/// Those of every entry.
pub fn copied(a: &Array) -> Result<Array> {
    call("copy", || ffi::copied(a))
}

/// Keeps something alive for as long as MLX uses its memory. Dropped once, on whichever thread lets go last: as a worker, so that
/// what it holds can't enter MLX there.
pub struct Owner(Option<Arc<Kept>>);

/// The thing itself.
struct Kept(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send>);

// SAFETY: a shared `Kept` gives access to nothing; only its last holder reaches the value, to drop it, and the value is `Send`.
unsafe impl Sync for Kept {}

impl Owner {
    /// Keeps `value`.
    pub fn new(value: impl Any + Send) -> Self {
        Self(Some(Arc::new(Kept(Box::new(value)))))
    }

    fn share(&self) -> Box<Self> {
        Box::new(Self(self.0.clone()))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let kept = self.0.take();
        lock::as_worker(|| quietly(|| drop(kept)));
    }
}

/// Memory that others own, as arrays can be put over it.
pub struct Memory(Array);

impl Memory {
    /// The host's memory of `nbytes` bytes from `data` on. Not taken where the loaded library wants memory of its own.
    ///
    /// # Safety
    /// The memory must be readable, and unchanged by anybody, until `owner` is dropped; with `whole_pages`, so must be the rest of the
    /// pages that it starts and ends in.
    ///
    /// # Errors
    /// Those of every entry.
    pub unsafe fn host(data: *const u8, nbytes: usize, whole_pages: bool, owner: &Owner) -> Result<Option<Self>> {
        let shared = owner.share();
        let mut taken = call("adopt", || ffi::adopt_host(data as usize, nbytes, whole_pages, shared))?;
        Ok(taken.pop().map(Self))
    }

    /// Memory of a CUDA device, `nbytes` bytes from `data` on, or the `MTLBuffer` at `data`.
    ///
    /// # Safety
    /// As for [`host`](Self::host); the pointer must be one of the device with this ordinal, and, with `host_visible`, of the host.
    ///
    /// # Errors
    /// `Device` when the loaded library has no GPU backend.
    pub unsafe fn device(
        data: *const c_void,
        nbytes: usize,
        ordinal: i32,
        host_visible: bool,
        owner: &Owner,
    ) -> Result<Self> {
        let shared = owner.share();
        call("adopt", || ffi::adopt_device(data as usize, nbytes, ordinal, host_visible, shared)).map(Self)
    }

    /// An array over a part of the memory, `offset` bytes from its start, with strides in elements.
    ///
    /// # Safety
    /// Every element must lie within the memory and be aligned for its dtype; strides must not be negative, and there must be elements.
    ///
    /// # Errors
    /// `InvalidArgument` for a dtype that is not known.
    pub unsafe fn array(&self, offset: usize, shape: &[i32], strides: &[i64], dtype_code: u8) -> Result<Array> {
        call("adopt", || ffi::over(&self.0, offset, shape, strides, dtype_code))
    }
}

/// The `ctx` of a new `mlx_array` of MLX's C API, to be freed by that.
///
/// # Errors
/// `OutOfMemory`.
pub fn to_c(a: &Array) -> Result<*mut c_void> {
    Ok(call("into_mlx_c", || ffi::to_c(a))? as *mut c_void)
}

/// The array of an `mlx_array`'s `ctx`; with `take`, that is freed.
///
/// # Safety
/// `ctx` must be a live `mlx_array`'s, and with `take` must not be used again.
///
/// # Errors
/// Those of every entry.
pub unsafe fn from_c(ctx: *mut c_void, take: bool) -> Result<Array> {
    call("from_mlx_c", || ffi::from_c(ctx as usize, take))
}

/// An array whose offset in its storage is wrong by `bytes`, for tests.
///
/// # Errors
/// Those of every entry.
#[doc(hidden)]
pub fn shifted_for_test(a: &Array, bytes: i64) -> Result<Array> {
    call("storage", || ffi::shifted_for_test(a, bytes))
}

/// An available array of the same shape without any storage, for tests.
///
/// # Errors
/// Those of every entry.
#[doc(hidden)]
pub fn without_storage_for_test(a: &Array) -> Result<Array> {
    call("storage", || ffi::without_storage_for_test(a))
}

//! Streams, evaluation and waiting.
//!
//! MLX binds streams to threads. Here one shared stream a device serves the whole process; every thread gets it as its default
//! ([`ensure_default_streams`], called by every entry), so that an array built on one thread can be evaluated on another.
//! [`eval`] and [`async_eval`] are the only ways to evaluation; [`wait`] blocks outside the lock and touches no array meanwhile.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::call::call;
use crate::{Array, Exception, ExceptionKind, Result, lock};

#[cxx::bridge(namespace = "oxmlx::runtime")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    unsafe extern "C++" {
        include!("runtime.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        type Waiter;
        fn wait(self: Pin<&mut Waiter>) -> Result<()>;

        fn prepare_thread() -> Result<()>;
        fn default_is_gpu() -> Result<bool>;
        fn gpu_count() -> Result<usize>;
        fn open_stream(gpu: bool) -> Result<i32>;
        fn enter_stream(gpu: bool, index: i32) -> Result<()>;
        fn leave_stream();
        fn synchronize_stream(gpu: bool, index: i32) -> Result<()>;
        fn stream_count() -> Result<usize>;

        fn async_eval(arrays: &[Array]) -> Result<()>;
        fn eval(arrays: &[Array]) -> Result<()>;
        fn is_available(a: &Array) -> Result<bool>;
        fn waiter(a: &Array) -> Result<UniquePtr<Waiter>>;

        fn version_loaded() -> &'static str;
        fn version_compiled() -> &'static str;
        fn library_path() -> String;
        fn throw_for_test(kind: &str) -> Result<()>;
    }
}

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// The processor.
    Cpu,
    /// A GPU through Metal or CUDA.
    Gpu,
}

impl DeviceType {
    fn is_gpu(self) -> bool {
        self == Self::Gpu
    }
}

thread_local! {
    static PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the process-wide streams this thread's defaults, once a thread. Idempotent, and starts no OS thread.
///
/// # Errors
/// `Version` when the loaded library is of another release than the one that this crate was compiled with.
#[inline]
pub fn ensure_default_streams() -> Result<()> {
    if PREPARED.get() { Ok(()) } else { prepare_thread() }
}

#[cold]
fn prepare_thread() -> Result<()> {
    check_version()?;
    let _guard = lock::enter()?;
    ffi::prepare_thread().map_err(|e| Exception::from_cxx("prepare_thread", &e))?;
    PREPARED.set(true);
    Ok(())
}

/// Compares the release that the headers came from with the library that the loader found.
fn check_version() -> Result<()> {
    static CHECKED: OnceLock<Option<String>> = OnceLock::new();
    let skew = CHECKED.get_or_init(|| {
        let (compiled, loaded) = (version_compiled(), version_loaded());
        (compiled != loaded).then(|| {
            format!(
                "compiled for MLX {compiled}, but the loader found libmlx {loaded}: \
                 unset LD_LIBRARY_PATH or point it at MLX {compiled}, or rebuild against the one you mean"
            )
        })
    });
    match skew {
        None => Ok(()),
        Some(text) => Err(Exception::new(ExceptionKind::Version, "version", text.clone())),
    }
}

/// The MLX release whose headers this crate was compiled with.
pub fn version_compiled() -> &'static str {
    ffi::version_compiled()
}

/// The release of the library that the loader found.
pub fn version_loaded() -> &'static str {
    ffi::version_loaded()
}

/// The file of the library that the loader found; empty where it can't be told.
pub fn library_path() -> String {
    ffi::library_path()
}

/// The device that operations go to outside any scope.
///
/// # Errors
/// Those of every entry.
pub fn default_device() -> Result<DeviceType> {
    Ok(if call("default_device", ffi::default_is_gpu)? { DeviceType::Gpu } else { DeviceType::Cpu })
}

/// How many GPUs MLX sees.
///
/// # Errors
/// Those of every entry.
pub fn gpu_count() -> Result<usize> {
    call("device_count", ffi::gpu_count)
}

/// Opens a stream that any thread may use. MLX never closes one: keep and reuse it.
///
/// # Errors
/// `Device` when there is no such device.
pub fn open_stream(device: DeviceType) -> Result<i32> {
    call("new_stream", || ffi::open_stream(device.is_gpu()))
}

/// Runs `f` with this thread's operations going to the given stream.
///
/// # Errors
/// What MLX throws for a stream that is not there; what `f` returns is passed on.
pub fn with_stream<T>(device: DeviceType, index: i32, f: impl FnOnce() -> T) -> Result<T> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ffi::leave_stream();
        }
    }
    call("set_default_stream", || ffi::enter_stream(device.is_gpu(), index))?;
    let _leave = Leave;
    Ok(f())
}

/// Blocks until the stream has done all it was given.
///
/// # Errors
/// The error of a kernel that failed on it.
pub fn synchronize(device: DeviceType, index: i32) -> Result<()> {
    call("synchronize", || ffi::synchronize_stream(device.is_gpu(), index))
}

/// How many streams MLX holds.
///
/// # Errors
/// Those of every entry.
pub fn stream_count() -> Result<usize> {
    call("get_streams", ffi::stream_count)
}

/// Starts the computation of `arrays` and of all they depend on, and returns without waiting for it.
///
/// # Errors
/// `InvalidArgument` inside a transform; what a primitive throws while it is dispatched.
pub fn async_eval(arrays: &[Array]) -> Result<()> {
    call("async_eval", || ffi::async_eval(arrays))
}

/// Computes `arrays` and all they depend on, and waits for them.
///
/// Outside a transform the wait is outside the lock, so that other threads go on; inside one, evaluation is synchronous and on
/// this thread, where the trace belongs.
///
/// # Errors
/// The error of a kernel that failed.
pub fn eval(arrays: &[Array]) -> Result<()> {
    if crate::trace::is_tracing() {
        return call("eval", || ffi::eval(arrays));
    }
    async_eval(arrays)?;
    arrays.iter().try_for_each(wait)
}

/// Waits for an array that was given to its stream.
///
/// # Errors
/// `InvalidArgument` for a lazy array; the error of the kernel that failed.
pub fn wait(array: &Array) -> Result<()> {
    let mut waiter = call("wait", || ffi::waiter(array))?;
    if waiter.is_null() {
        return Ok(());
    }
    // Outside the lock, on a scratch array that only this thread knows: two threads waiting in one array free its event twice.
    let outcome = waiter.pin_mut().wait().map_err(|e| Exception::from_cxx("eval", &e));
    call("wait", || {
        drop(waiter);
        ffi::is_available(array)
    })?;
    outcome
}

/// Whether an array's values are there.
///
/// # Errors
/// The error of the kernel that failed to compute it.
pub fn is_available(array: &Array) -> Result<bool> {
    call("is_available", || ffi::is_available(array))
}

/// Throws one C++ exception of the named kind, for tests of the error path.
///
/// # Errors
/// Always, but for a kind that is not known.
#[doc(hidden)]
pub fn throw_for_test(kind: &str) -> Result<()> {
    call("throw_for_test", || ffi::throw_for_test(kind))
}

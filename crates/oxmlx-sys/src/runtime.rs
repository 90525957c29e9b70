//! Streams and waiting.
//!
//! MLX binds streams to threads. Here one shared stream a device serves the whole process; every thread gets it as its default
//! ([`ensure_default_streams`], called by every entry), so that an array built on one thread can be evaluated on another.
//! Evaluation is in [`evaluation`].

use std::cell::Cell;
use std::sync::OnceLock;

use cxx::UniquePtr;

use crate::call::call;
use crate::{Array, Exception, ExceptionKind, Result, evaluation, lock, owner};

pub use crate::evaluation::{async_eval, eval, is_available, wait};

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
        fn current_is_gpu() -> Result<bool>;
        fn gpu_count() -> Result<usize>;
        fn open_stream(gpu: bool) -> Result<i32>;
        fn enter_stream(gpu: bool, index: i32) -> Result<()>;
        fn leave_stream();
        // These two have noexcept bodies.
        fn scope_index() -> i32;
        fn scope_is_gpu() -> bool;
        fn marker() -> Result<Array>;
        fn stream_count() -> Result<usize>;

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
    owner::start()?;
    ffi::prepare_thread().map_err(|e| Exception::from_cxx("prepare_thread", &e))?;
    lock::watch_end();
    PREPARED.set(true);
    Ok(())
}

/// Prepares the owner thread, which makes the process-wide streams, and returns how many GPUs there are.
pub(crate) fn start_on_owner() -> Result<usize> {
    let told = |e| Exception::from_cxx("prepare_thread", &e);
    ffi::prepare_thread().map_err(told)?;
    evaluation::ffi::guard_exit().map_err(told)?;
    PREPARED.set(true);
    ffi::gpu_count().map_err(told)
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

/// The device that this thread's operations go to: that of its innermost scope, else the default of the process.
///
/// # Errors
/// Those of every entry.
pub fn current_device() -> Result<DeviceType> {
    Ok(if call("default_device", ffi::current_is_gpu)? { DeviceType::Gpu } else { DeviceType::Cpu })
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

/// Leaves a scope when it is dropped.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        ffi::leave_stream();
    }
}

/// Runs `f` with this thread's operations going to the given stream.
///
/// # Errors
/// What MLX throws for a stream that is not there; what `f` returns is passed on.
pub fn with_stream<T>(device: DeviceType, index: i32, f: impl FnOnce() -> T) -> Result<T> {
    call("set_default_stream", || ffi::enter_stream(device.is_gpu(), index))?;
    let _leave = Leave;
    Ok(f())
}

/// The innermost scope of this thread.
pub(crate) fn scope() -> Option<(DeviceType, i32)> {
    let index = ffi::scope_index();
    let device = if ffi::scope_is_gpu() { DeviceType::Gpu } else { DeviceType::Cpu };
    (index >= 0).then_some((device, index))
}

/// Runs `f` in another thread's scope.
pub(crate) fn within<T>(scope: Option<(DeviceType, i32)>, f: impl FnOnce() -> T) -> T {
    let _leave = scope.filter(|&(device, index)| ffi::enter_stream(device.is_gpu(), index).is_ok()).map(|_| Leave);
    f()
}

/// Blocks until the stream has done all it was given. The wait is outside the lock.
///
/// # Errors
/// What MLX throws for a stream that is not there. A kernel that failed on the stream is told to those who read its results.
pub fn synchronize(device: DeviceType, index: i32) -> Result<()> {
    with_stream(device, index, synchronize_current)?
}

/// [`synchronize`] for the stream that this thread's operations go to.
///
/// # Errors
/// Those of every entry.
pub fn synchronize_current() -> Result<()> {
    let marker = call("synchronize", ffi::marker)?;
    evaluation::eval(std::slice::from_ref(&marker))
}

/// How many streams MLX holds.
///
/// # Errors
/// Those of every entry.
pub fn stream_count() -> Result<usize> {
    call("get_streams", ffi::stream_count)
}

/// A wait for one array that touches no array: it may be outside the lock, where other threads wait for the same one.
pub(crate) struct Waiter(UniquePtr<ffi::Waiter>);

/// A waiter for an array; none when its values are there.
///
/// # Errors
/// `InvalidArgument` for a lazy array.
pub(crate) fn waiter(array: &Array) -> Result<Option<Waiter>> {
    let waiter = call("wait", || ffi::waiter(array))?;
    Ok((!waiter.is_null()).then_some(Waiter(waiter)))
}

impl Waiter {
    /// Blocks until the array was computed.
    pub(crate) fn wait(mut self) -> Result<()> {
        // On a scratch array that only this thread knows: two threads waiting in one array free its event twice.
        let outcome = self.0.pin_mut().wait().map_err(|e| Exception::from_cxx("eval", &e));
        call("wait", || {
            drop(self);
            Ok(())
        })?;
        outcome
    }
}

/// Throws one C++ exception of the named kind, for tests of the error path.
///
/// # Errors
/// Always, but for a kind that is not known.
#[doc(hidden)]
pub fn throw_for_test(kind: &str) -> Result<()> {
    call("throw_for_test", || ffi::throw_for_test(kind))
}

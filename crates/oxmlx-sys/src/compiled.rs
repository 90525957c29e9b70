//! Compiled functions: traced once a thread and shape, then replayed.
//!
//! MLX's own `compile` keys its caches, one a thread, by the closure's address, which the next closure may get: seen, a function
//! compiled and dropped on one thread gave its results to another one on a second thread. Here every function has an id that is
//! never used again, and with it goes its entry in the cache of every thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cxx::UniquePtr;

use crate::call::call;
use crate::closure::Closure;
use crate::runtime::DeviceType;
use crate::transforms::{Outcome, ffi, run};
use crate::types::CompileMode;
use crate::{Array, Result, generated, lock, runtime, trace};

/// A compiled function.
pub struct Compiled {
    function: UniquePtr<ffi::Compiled>,
}

// SAFETY: the C++ object holds an id and a `std::function` over shared pointers with atomic counts; every use, the destructor
// included, happens under the process-wide lock.
unsafe impl Send for Compiled {}

// SAFETY: as for `Send`: no access without the lock.
unsafe impl Sync for Compiled {}

static MODE_CHOSEN: AtomicBool = AtomicBool::new(false);

/// Compiles a function. Nothing is traced before the first call.
///
/// On the processor the mode is [`CompileMode::NoFuse`] unless another was chosen: MLX fuses for it by running a C++ compiler.
///
/// # Errors
/// Those of every entry.
pub fn compile(closure: Closure, shapeless: bool) -> Result<Compiled> {
    // 0 is what MLX takes for "no address"; small numbers are no addresses that it could use itself.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let function = call("compile", || ffi::compile(Box::new(closure), id, shapeless))?;
    Ok(Compiled { function })
}

/// Fuses for the device that operations go to, if that is to be done at all. The caller holds the lock, and keeps it while MLX traces.
fn choose_mode() -> Result<()> {
    static DISABLED: OnceLock<bool> = OnceLock::new();
    static FUSES: AtomicBool = AtomicBool::new(true);
    if MODE_CHOSEN.load(Ordering::Relaxed)
        || *DISABLED.get_or_init(|| std::env::var_os("MLX_DISABLE_COMPILE").is_some())
    {
        return Ok(());
    }
    let fuses = runtime::current_device()? == DeviceType::Gpu;
    if FUSES.swap(fuses, Ordering::Relaxed) != fuses {
        generated::compile::set_compile_mode(if fuses { CompileMode::Enabled } else { CompileMode::NoFuse })?;
    }
    Ok(())
}

/// How much `compile` does from now on, in the whole process.
///
/// # Errors
/// Those of every entry.
pub fn set_compile_mode(mode: CompileMode) -> Result<()> {
    let _guard = lock::enter()?;
    MODE_CHOSEN.store(true, Ordering::Relaxed);
    generated::compile::set_compile_mode(mode)
}

/// Forgets every trace, of every function and thread: the next calls trace again.
///
/// # Errors
/// Those of every entry.
pub fn clear_compile_caches() -> Result<()> {
    call("compile", ffi::clear_compile_caches)
}

impl Compiled {
    /// Calls the function: traces it when this thread has not for such inputs, then builds the traced graph over `inputs`.
    ///
    /// # Errors
    /// The closure's failure; what MLX throws for shapes that a shapeless trace does not fit.
    pub fn call(&self, inputs: &[Array]) -> Outcome<Vec<Array>> {
        run(|| {
            choose_mode()?;
            call("compile", || trace::enter(|| self.function.call(inputs)))
        })
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let function = std::mem::replace(&mut self.function, UniquePtr::null());
        match lock::enter_to_free() {
            Ok(_guard) => drop(function),
            // Inside a kernel: freeing would enter MLX, so the function is left to the process.
            Err(_) => std::mem::forget(function),
        }
    }
}

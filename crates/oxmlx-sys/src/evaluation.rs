//! Evaluation whose failures stay with the guilty.
//!
//! A kernel fails on a thread of MLX's, long after its node was dispatched and its graph was dropped. Each node that may fail
//! gets a place for its failure before the dispatch (`cpp/evaluation.h`), and what depends on it is written down, so that every array that
//! depends on a failure, and no other, gives it each time it is asked for its values ([`check`]).

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::closure::{Failure, Quiet, error_text, panic_text};
use crate::{Array, Exception, ExceptionKind, Result, lock, owner, runtime, trace};

#[cxx::bridge(namespace = "oxmlx::evaluation")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
pub(crate) mod ffi {
    extern "Rust" {
        type Guilt;
        fn guilt_of_mlx(text: &str) -> Box<Guilt>;
        fn text(self: &Guilt) -> &str;
        fn on_stream_thread();
        fn hold_for_exit() -> bool;
    }

    unsafe extern "C++" {
        include!("evaluation.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        type Fault;
        fn fail(self: &Fault, guilt: Box<Guilt>);

        fn evaluate(arrays: &[Array], wait: bool, needed: &mut Vec<Array>) -> Result<*const Guilt>;
        fn guilt_of(a: &Array) -> Result<*const Guilt>;
        fn is_available(a: &Array) -> Result<bool>;
        fn blame(a: &Array, text: &str) -> Result<*const Guilt>;
        fn records() -> Result<usize>;
        fn adopt_main_thread() -> Result<()>;
        fn guard_exit() -> Result<()>;
    }
}

/// What failed, and how. Clones share it.
#[derive(Clone)]
pub(crate) struct Guilt(Quiet<Arc<Cause>>);

struct Cause {
    text: String,
    how: How,
}

enum How {
    /// MLX threw while a task of its own ran.
    Mlx,
    /// The body of a Rust kernel returned this.
    Error(Arc<dyn std::error::Error + Send + Sync>),
    /// It panicked. The first who asks gets the payload.
    Panic(Mutex<Option<Box<dyn Any + Send>>>),
}

fn guilt_of_mlx(text: &str) -> Box<Guilt> {
    Box::new(Guilt(Quiet::new(Arc::new(Cause { text: text.to_owned(), how: How::Mlx }))))
}

/// Called by `exit` before MLX's statics are destroyed: whether this thread holds the lock now.
fn hold_for_exit() -> bool {
    lock::hold_for_exit()
}

/// Called first by each task of ours: what it drops on this thread must not enter MLX.
fn on_stream_thread() {
    lock::become_worker();
}

impl Guilt {
    /// The failure of a kernel's body.
    pub(crate) fn of_kernel(name: &str, failure: Failure) -> Box<Self> {
        let cause = match failure {
            Failure::Error(error) => Cause { text: error_text(&*error), how: How::Error(Arc::from(error)) },
            Failure::Panic(payload) => Cause {
                text: format!("kernel {name} panicked: {}", panic_text(&*payload)),
                how: How::Panic(Mutex::new(Some(payload))),
            },
        };
        Box::new(Self(Quiet::new(Arc::new(cause))))
    }

    fn text(&self) -> &str {
        &self.0.text
    }

    /// The error. A panic goes on in the first caller that can take it (`resume`), and is an error for all others.
    fn raise(&self, op: &'static str, resume: bool) -> Exception {
        let text = &self.0.text;
        match &self.0.how {
            How::Mlx => Exception::new(ExceptionKind::Standard, op, text),
            How::Error(error) => Exception::new(ExceptionKind::Closure, op, text).with_cause(Arc::clone(error)),
            How::Panic(payload) => {
                let payload = if resume { payload.lock().take() } else { None };
                match payload {
                    Some(payload) => std::panic::resume_unwind(payload),
                    None => Exception::new(ExceptionKind::Closure, op, text),
                }
            }
        }
    }
}

/// Calls `f` under the lock and takes a copy of the failure that it points at.
fn ask(
    op: &'static str,
    f: impl FnOnce() -> std::result::Result<*const Guilt, cxx::Exception>,
) -> Result<Option<Guilt>> {
    let _guard = lock::enter()?;
    let found = crate::call::call(op, f)?;
    // SAFETY: the pointer is null, or at a failure that C++ keeps as long as an array that depends on it lives; the arrays asked about
    // are borrowed by the caller, and nothing is let go while the lock is held.
    Ok(unsafe { found.as_ref() }.cloned())
}

fn raised(op: &'static str, guilt: Option<Guilt>) -> Result<()> {
    guilt.map_or(Ok(()), |guilt| Err(guilt.raise(op, true)))
}

/// The failure that an evaluated array depends on, as far as it has happened. A panic of a kernel goes on here.
///
/// # Errors
/// That failure.
pub fn check(op: &'static str, array: &Array) -> Result<()> {
    raised(op, ask(op, || ffi::guilt_of(array))?)
}

/// Starts the computation of `arrays` and of all they depend on, and returns without waiting for it.
///
/// Arrays that are known to depend on a failure are left out, the others are started.
///
/// # Errors
/// `InvalidArgument` inside a transform; the failure of an array that can't be computed; what a primitive throws while it is
/// dispatched; `OutOfMemory` for an array larger than the machine's memory.
pub fn async_eval(arrays: &[Array]) -> Result<()> {
    raised("eval", dispatch("async_eval", arrays, false)?)
}

/// Hands a computation over, and says which failure one of the arrays is known to depend on. With `wait` it is synchronous, and all
/// of it under the lock.
///
/// What nodes of a GPU need of the CPU is computed first, and waited for without the lock.
fn dispatch(op: &'static str, arrays: &[Array], wait: bool) -> Result<Option<Guilt>> {
    loop {
        let mut needed = Vec::new();
        let guilt = ask(op, || owner::run(|| ffi::evaluate(arrays, wait, &mut needed)))?;
        if needed.is_empty() {
            return Ok(guilt);
        }
        for array in &needed {
            // In the order of dependence, so that nothing is left for this one to need. What fails is found by the next survey.
            ask(op, || owner::run(|| ffi::evaluate(std::slice::from_ref(array), wait, &mut Vec::new())))?;
            if !wait && !is_lazy(array)? {
                outcome(array)?;
            }
        }
    }
}

/// Computes `arrays` and all they depend on, and waits for them.
///
/// Outside a transform the wait is outside the lock, so that other threads go on; inside one, evaluation is synchronous and on
/// this thread, where the trace belongs.
///
/// # Errors
/// Those of [`async_eval`]; the failure of a kernel that an array depends on, each time it is evaluated.
pub fn eval(arrays: &[Array]) -> Result<()> {
    if trace::is_tracing() {
        raised("eval", dispatch("eval", arrays, true)?)?;
        return arrays.iter().try_for_each(|array| check("eval", array));
    }
    let started = dispatch("eval", arrays, false)?;
    // Those that were started are waited for also when another one failed: what is returned is the first failure in order.
    let mut waited = Ok(());
    for array in arrays {
        if started.is_none() || !is_lazy(array)? {
            waited = waited.and(wait(array));
        }
    }
    waited.and(raised("eval", started))
}

fn is_lazy(array: &Array) -> Result<bool> {
    Ok(array.progress()? == crate::array::Status::Unscheduled)
}

/// Waits for an array that was given to its stream.
///
/// # Errors
/// `InvalidArgument` for a lazy array; the failure of a kernel that it depends on, each time.
pub fn wait(array: &Array) -> Result<()> {
    raised("eval", outcome(array)?)
}

/// Waits for an array that was given to its stream: the failure that it depends on.
fn outcome(array: &Array) -> Result<Option<Guilt>> {
    let guard = lock::enter()?;
    let Some(waiter) = runtime::waiter(array)? else {
        return ask("eval", || ffi::guilt_of(array));
    };
    drop(guard);
    let told = waiter.wait();
    ask("eval", || match &told {
        Ok(()) => {
            ffi::is_available(array)?;
            ffi::guilt_of(array)
        }
        // Something of MLX's failed that is not known to: the waiter was told, and nobody else will be.
        Err(exception) => ffi::blame(array, exception.what()),
    })
}

/// Whether an array's values are there.
///
/// # Errors
/// The failure of a kernel that it depends on.
pub fn is_available(array: &Array) -> Result<bool> {
    match ask("is_available", || ffi::guilt_of(array))? {
        Some(guilt) => Err(guilt.raise("is_available", false)),
        None => crate::call::call("is_available", || ffi::is_available(array)),
    }
}

/// How many arrays and evaluations are written down at the moment: for tests of leaks.
///
/// # Errors
/// Those of every entry.
#[doc(hidden)]
pub fn records() -> Result<usize> {
    crate::call::call("records", ffi::records)
}

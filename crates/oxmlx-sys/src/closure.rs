//! Rust closures that C++ calls back: over arrays, while a transform traces or a graph is built.
//!
//! A closure may fail or panic. Neither may cross C++: both are caught here and kept in the closure's own state, C++ gets an
//! exception in their place, and the Rust caller takes them out again ([`Failure`]) once C++ has returned.

use std::any::Any;
use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Array;

/// Any error that a closure returns.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// How a closure failed.
pub enum Failure {
    /// It returned this error.
    Error(BoxError),
    /// It panicked with this payload.
    Panic(Box<dyn Any + Send>),
}

impl Failure {
    /// The error; a panic goes on in the caller.
    pub fn into_error(self) -> BoxError {
        match self {
            Self::Error(error) => error,
            Self::Panic(payload) => std::panic::resume_unwind(payload),
        }
    }
}

/// Where the failure of a closure waits for its Rust caller. Clones share it.
#[derive(Clone, Default)]
pub struct FailureSlot(Arc<Mutex<Option<Failure>>>);

impl FailureSlot {
    /// Takes the failure out, if there is one.
    pub fn take(&self) -> Option<Failure> {
        self.0.lock().take()
    }

    /// Runs `f`; its error or panic is kept here, and a word about it returned for C++. The first failure is kept: what fails after
    /// it fails because of it.
    pub(crate) fn catch<T>(&self, f: impl FnOnce() -> Result<T, BoxError>) -> Result<T, String> {
        let failure = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Failure::Error(error),
            Err(payload) => Failure::Panic(payload),
        };
        let text = match &failure {
            Failure::Error(error) => error.to_string(),
            Failure::Panic(payload) => format!("panic: {}", panic_text(&**payload)),
        };
        self.0.lock().get_or_insert(failure);
        Err(text)
    }
}

/// What a panic said, as far as it is text.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("of no text")
}

type ArrayFn = dyn Fn(&[Array]) -> Result<Vec<Array>, BoxError> + Send + Sync;

/// A function from arrays to arrays that C++ holds and calls. Clones share the function and the slot.
#[derive(Clone)]
pub struct Closure {
    body: Arc<ArrayFn>,
    slot: FailureSlot,
}

impl Closure {
    /// A closure whose failures wait in `slot`.
    pub fn new(
        slot: FailureSlot,
        body: impl Fn(&[Array]) -> Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Arc::new(body), slot }
    }

    /// The call from Rust.
    ///
    /// # Errors
    /// The function's own.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>, BoxError> {
        (self.body)(inputs)
    }

    /// The call from C++, where an `Err` becomes an exception.
    pub(crate) fn apply(&self, inputs: &[Array]) -> Result<Vec<Array>, String> {
        self.slot.catch(|| (self.body)(inputs))
    }
}

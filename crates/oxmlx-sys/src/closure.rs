//! Rust closures that C++ calls back: over arrays, while a transform traces or a graph is built.
//!
//! A closure may fail or panic. Neither may cross C++: both are caught here and kept in the closure's own state, C++ gets an
//! exception in their place, and the Rust caller takes them out again ([`Failure`]) once C++ has returned. The same holds for the end of
//! what a closure captured, and of what it failed with, which may come from C++ at any later time (`Quiet`).

use std::any::Any;
use std::error::Error as StdError;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Array;

/// Any error that a closure returns.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Runs `f`, a drop of something that is not ours. A panic can't go on through MLX, and there is no caller to give it to; the panic hook
/// has told it.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        // Its own drop may panic too.
        std::mem::forget(payload);
    }
}

/// Something of safe code's that C++ may be the last to hold: a panic of its drop stays inside.
pub(crate) struct Quiet<T>(Option<T>);

impl<T> Quiet<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("only this and `drop` take the value, and both end its owner")
    }
}

impl<T: Clone> Clone for Quiet<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Quiet<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("only `into_inner` and `drop` take the value, and both end its owner")
    }
}

impl<T> Drop for Quiet<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        quietly(|| drop(value));
    }
}

/// What an error says of itself; its author's `Display` may fail or panic.
pub(crate) fn error_text(error: &(dyn StdError + Send + Sync)) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| {
        let mut text = String::new();
        std::fmt::write(&mut text, format_args!("{error}")).map(|()| text).ok()
    }));
    match text {
        Ok(text) => text.unwrap_or_else(|| "an error that does not print".to_owned()),
        Err(payload) => {
            std::mem::forget(payload);
            "an error that panics when it is printed".to_owned()
        }
    }
}

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
pub struct FailureSlot(Arc<Mutex<Option<Quiet<Failure>>>>);

impl FailureSlot {
    /// Takes the failure out, if there is one.
    pub fn take(&self) -> Option<Failure> {
        let failure = self.0.lock().take();
        failure.map(Quiet::into_inner)
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
            Failure::Error(error) => error_text(&**error),
            Failure::Panic(payload) => format!("panic: {}", panic_text(&**payload)),
        };
        let (failure, mut slot) = (Quiet::new(failure), self.0.lock());
        let later = if slot.is_none() { slot.replace(failure) } else { Some(failure) };
        drop(slot);
        drop(later);
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
    body: Quiet<Arc<ArrayFn>>,
    slot: FailureSlot,
}

impl Closure {
    /// A closure whose failures wait in `slot`.
    pub fn new(
        slot: FailureSlot,
        body: impl Fn(&[Array]) -> Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Quiet::new(Arc::new(body)), slot }
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

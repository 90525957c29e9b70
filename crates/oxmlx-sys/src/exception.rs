//! What a C++ exception becomes: its kind, the operation that was called and MLX's own words.
//!
//! `cpp/trycatch.h` puts one byte for the kind before the message; it is taken off here and nowhere else.

use std::fmt;
use std::sync::Arc;

/// The result of a call into MLX.
pub type Result<T> = std::result::Result<T, Exception>;

/// What kind of C++ exception MLX threw, or why the bridge refused to enter MLX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExceptionKind {
    /// `std::invalid_argument`: a shape, dtype or argument that MLX does not take.
    InvalidArgument,
    /// `std::out_of_range`.
    OutOfRange,
    /// `std::overflow_error`.
    Overflow,
    /// `std::bad_alloc` or `std::length_error`.
    OutOfMemory,
    /// Any other `std::exception`.
    Standard,
    /// Something thrown that is no `std::exception`.
    Unknown,
    /// A Rust closure inside a transform or kernel returned an error.
    Closure,
    /// The device that was asked for is not there.
    Device,
    /// MLX was entered from one of its own worker threads.
    Reentered,
    /// The loaded library is of another release than the headers that this crate was compiled with.
    Version,
}

/// A failed call into MLX: the exception's kind, the operation and MLX's text.
#[derive(Clone, Debug)]
pub struct Exception {
    kind: ExceptionKind,
    op: &'static str,
    what: String,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Exception {
    #[cold]
    pub(crate) fn from_cxx(op: &'static str, error: &cxx::Exception) -> Self {
        let tagged = error.what();
        let mut rest = tagged.chars();
        let kind = match rest.next() {
            Some('I') => ExceptionKind::InvalidArgument,
            Some('R') => ExceptionKind::OutOfRange,
            Some('O') => ExceptionKind::Overflow,
            Some('M') => ExceptionKind::OutOfMemory,
            Some('S') => ExceptionKind::Standard,
            Some('C') => ExceptionKind::Closure,
            Some('D') => ExceptionKind::Device,
            _ => ExceptionKind::Unknown,
        };
        Self { kind, op, what: rest.as_str().to_owned(), cause: None }
    }

    /// An error that the bridge itself raises.
    #[cold]
    pub fn new(kind: ExceptionKind, op: &'static str, what: impl Into<String>) -> Self {
        Self { kind, op, what: what.into(), cause: None }
    }

    /// Adds the Rust error that is behind it.
    #[must_use]
    pub fn with_cause(mut self, cause: Arc<dyn std::error::Error + Send + Sync>) -> Self {
        self.cause = Some(cause);
        self
    }

    /// The error that a closure or a kernel's body returned, when that is what failed.
    pub fn cause(&self) -> Option<&Arc<dyn std::error::Error + Send + Sync>> {
        self.cause.as_ref()
    }

    /// The kind of the exception.
    pub fn kind(&self) -> ExceptionKind {
        self.kind
    }

    /// The MLX operation that was called.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// MLX's own message, unchanged.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.what)
    }
}

impl std::error::Error for Exception {}

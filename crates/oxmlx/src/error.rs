//! The one error type of this crate: what went wrong, in which MLX operation, with the shapes and dtypes that were involved.
//!
//! [`Error`] is one word wide. [`Error::kind`] is what a program acts on; the message is for people: lower case, the thing named,
//! the values given. MLX's own words are kept as they are.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use oxmlx_sys::{Exception, ExceptionKind};

use crate::Dtype;

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of error it is.
///
/// The first five are what MLX's exceptions can tell; the next five come from oxmlx's own checks, before MLX is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// MLX does not take this argument (`std::invalid_argument`).
    InvalidArgument,
    /// MLX: something lies outside its range (`std::out_of_range`).
    OutOfRange,
    /// MLX: a size does not fit its integer (`std::overflow_error`).
    Overflow,
    /// Not enough memory, found by MLX or by oxmlx before MLX was asked.
    OutOfMemory,
    /// MLX said something else; its text is in the message.
    Backend,
    /// Shapes that do not fit each other or the data.
    Shape,
    /// A dtype that the operation does not take, or that is not the array's.
    Dtype,
    /// An axis outside the array's dimensions.
    Axis,
    /// An index outside its axis.
    Index,
    /// A group size, group count or bit width that does not exist.
    Group,
    /// Reading or writing a file failed.
    Io,
    /// A file or byte stream is not in the format it should be in.
    Format,
    /// Not available here: on this device, in this build or inside a kernel.
    Unsupported,
    /// A closure given to a transform or kernel returned an error.
    Closure,
    /// The device that was asked for is not there.
    Device,
    /// The loaded MLX library is of another release than the one oxmlx was compiled with.
    Version,
}

/// A failed operation. A clone shares its source.
///
/// ```
/// use oxmlx::{Array, ErrorKind};
/// let error = Array::from_slice(&[1.0f32, 2.0, 3.0], (2, 2)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Shape);
/// assert_eq!(error.to_string(), "array: 3 elements given, shape [2, 2] has 4");
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    op: &'static str,
    message: Cow<'static, str>,
    shapes: Vec<Vec<i32>>,
    dtypes: Vec<Dtype>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` in the operation `op`.
    #[cold]
    pub fn new(kind: ErrorKind, op: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            op,
            message: message.into(),
            shapes: Vec::new(),
            dtypes: Vec::new(),
            source: None,
        }))
    }

    /// Adds a shape that was involved.
    #[must_use]
    pub fn with_shape(mut self, shape: &[i32]) -> Self {
        self.0.shapes.push(shape.to_vec());
        self
    }

    /// Adds a dtype that was involved.
    #[must_use]
    pub fn with_dtype(mut self, dtype: Dtype) -> Self {
        self.0.dtypes.push(dtype);
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The MLX operation that was called, by its C++ name.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// What went wrong, without the operation's name: MLX's own text, or oxmlx's.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The shapes involved, where known, in argument order.
    pub fn shapes(&self) -> &[Vec<i32>] {
        &self.0.shapes
    }

    /// The dtypes involved, where known, in argument order.
    pub fn dtypes(&self) -> &[Dtype] {
        &self.0.dtypes
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.op, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, op, message, shapes, dtypes, source } = &*self.0;
        let mut s = f.debug_struct("Error");
        s.field("kind", kind).field("op", op).field("message", message);
        if !shapes.is_empty() {
            s.field("shapes", shapes);
        }
        if !dtypes.is_empty() {
            s.field("dtypes", dtypes);
        }
        if let Some(source) = source {
            s.field("source", source);
        }
        s.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

impl From<Exception> for Error {
    #[cold]
    fn from(exception: Exception) -> Self {
        // The error of a closure or a kernel's body: as it was, when it is one of this crate.
        if let Some(own) = exception.cause().and_then(|cause| cause.downcast_ref::<Self>()) {
            return own.clone();
        }
        let kind = match exception.kind() {
            ExceptionKind::InvalidArgument => ErrorKind::InvalidArgument,
            ExceptionKind::OutOfRange => ErrorKind::OutOfRange,
            ExceptionKind::Overflow => ErrorKind::Overflow,
            ExceptionKind::OutOfMemory => ErrorKind::OutOfMemory,
            ExceptionKind::Closure => ErrorKind::Closure,
            ExceptionKind::Device => ErrorKind::Device,
            ExceptionKind::Reentered => ErrorKind::Unsupported,
            ExceptionKind::Version => ErrorKind::Version,
            _ => ErrorKind::Backend,
        };
        let mut error = Self::new(kind, exception.op(), exception.what().to_owned());
        error.0.source = exception.cause().map(Arc::clone);
        error
    }
}

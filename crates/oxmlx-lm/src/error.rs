//! The crate's error: what kind of thing failed, which file, tensor or field it was, and how to mend it.
//!
//! One line of lower case, no full stop; the source's text is never repeated in it.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong; match on this, not on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused: missing file, no permission, broken symbolic link.
    Io,
    /// A file is damaged or isn't what its name says.
    Format,
    /// The file is sound but asks for something that isn't implemented: an architecture, a tensor type, a rope scaling.
    Unsupported,
    /// A model's configuration lacks a field, or a field has a wrong type or an impossible value; so may an environment variable.
    Config,
    /// A checkpoint lacks a tensor, or a tensor's dtype or shape doesn't fit the configuration.
    Weights,
    /// The prompt is unusable, an empty one for example.
    Prompt,
    /// A sampling parameter is out of range, or the logits can't be sampled from.
    Sampling,
    /// The tokens don't fit the model's context.
    Context,
    /// A cache can't do what was asked: forget tokens that it has overwritten, take another shape, batch.
    Cache,
    /// A sequence is unknown, or not in the state that the call needs.
    Sequence,
    /// A chat template is missing, doesn't compile or refused its messages.
    Template,
    /// A tokenizer can't be built, or it can't encode or decode.
    Tokenizer,
    /// MLX or the bridge to it failed; the source says how.
    Mlx,
    /// The caller asked to stop.
    Cancelled,
}

/// An error of the engine or of a file that it read.
///
/// ```
/// let error = oxmlx_lm::ModelFiles::open("no/such/model.gguf").unwrap_err();
/// assert_eq!(error.kind(), oxmlx_lm::ErrorKind::Io);
/// assert_eq!(error.path(), Some("no/such/model.gguf".as_ref()));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    what: String,
    path: Option<PathBuf>,
    tensor: Option<String>,
    field: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, what: what.into(), path: None, tensor: None, field: None, source: None }))
    }

    /// The I/O error `source`, met at `path`.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        let what = match source.kind() {
            std::io::ErrorKind::NotFound => "not found, check the path",
            std::io::ErrorKind::PermissionDenied => "no permission to read it",
            _ => "can't be read",
        };
        Self::new(ErrorKind::Io, what).at_path(path).caused_by(source)
    }

    /// Adds the file, unless one that is nearer to the fault is known already.
    pub(crate) fn at_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Adds the tensor, unless one is known already.
    pub(crate) fn at_tensor(mut self, tensor: impl Into<String>) -> Self {
        self.0.tensor.get_or_insert_with(|| tensor.into());
        self
    }

    /// Adds the configuration field, metadata key or parameter, unless one is known already.
    pub(crate) fn at_field(mut self, field: impl Into<String>) -> Self {
        self.0.field.get_or_insert_with(|| field.into());
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file or folder concerned, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The tensor concerned, where there is one.
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// The configuration field, metadata key or parameter concerned, where there is one.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(tensor) = &self.0.tensor {
            write!(f, "tensor {}: ", tensor.escape_debug())?;
        }
        if let Some(field) = &self.0.field {
            write!(f, "{}: ", field.escape_debug())?;
        }
        f.write_str(&self.0.what)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self}", self.0.kind)?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        f.write_str(")")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|e| e.as_ref() as _)
    }
}

impl From<oxmlx::Error> for Error {
    #[cold]
    fn from(error: oxmlx::Error) -> Self {
        let what = match error.kind() {
            oxmlx::ErrorKind::Version => "MLX can't be used",
            _ => "the computation failed",
        };
        Self::new(ErrorKind::Mlx, what).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_one_word_wide_and_crosses_threads() {
        fn sendable<T: Send + Sync + 'static>() {}
        sendable::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn message_names_path_tensor_and_field_and_leaves_the_source_to_source() {
        let error = Error::new(ErrorKind::Format, "shape is wrong")
            .at_path("a/b.gguf")
            .at_tensor("blk.0\n.x")
            .at_field("dims")
            .caused_by(std::io::Error::other("deep"));
        assert_eq!(error.to_string(), "a/b.gguf: tensor blk.0\\n.x: dims: shape is wrong");
        assert_eq!(error.source().unwrap().to_string(), "deep");
        assert_eq!(format!("{error:?}"), "Format(a/b.gguf: tensor blk.0\\n.x: dims: shape is wrong: deep)");
    }

    #[test]
    fn the_nearest_place_wins() {
        let error = Error::new(ErrorKind::Io, "x").at_path("near").at_path("far");
        assert_eq!(error.path(), Some(Path::new("near")));
    }
}

//! The one error type of the commands: each text names the thing and the fix.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::mlx;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line is not what the command takes.
    Usage(String),
    /// MLX or the model could not be had.
    Mlx(mlx::error::Error),
    /// A program that is needed is missing or does not work.
    Tool { tool: String, fix: &'static str },
    /// A step ran and failed; what it printed says why.
    Step { step: String, status: String },
    /// The generated bridge and MLX's headers do not agree.
    Bridge(String),
    /// The file system said no.
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
}

impl Error {
    /// For `map_err`: an I/O error with what was being done to which path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }

    /// For commands that take no arguments, or only those they have already dealt with.
    pub(crate) fn unexpected(arguments: &[String]) -> Result<(), Self> {
        match arguments.first() {
            None => Ok(()),
            Some(argument) => Err(Self::Usage(format!("unexpected argument {argument:?}; --help tells what it takes"))),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Bridge(what) => f.write_str(what),
            Self::Mlx(error) => error.fmt(f),
            Self::Tool { tool, fix } => write!(f, "{tool} is missing or does not run: {fix}"),
            Self::Step { step, status } => write!(f, "{step} failed ({status})"),
            Self::Io { doing, path, .. } => write!(f, "{doing} {}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Mlx(error) => std::error::Error::source(error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<mlx::error::Error> for Error {
    fn from(error: mlx::error::Error) -> Self {
        Self::Mlx(error)
    }
}

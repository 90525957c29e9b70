//! What can go wrong while MLX is looked for or fetched. Each text names the thing and, where there is one, the fix.

use std::fmt;
use std::path::{Path, PathBuf};

/// A failure that stops the setup or the build.
#[derive(Debug)]
pub enum Error {
    /// `mlx-pin.toml` is not what it should be.
    Pin(String),
    /// A variable holds a value that is not allowed.
    Variable {
        /// Its name.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        allowed: &'static str,
    },
    /// No cache folder can be named: neither `OXMLX_HOME` nor `HOME` is set.
    NoCache,
    /// MLX does not run on this operating system.
    Platform(String),
    /// The pin lists no wheel that this system can load.
    NoWheel {
        /// The wheel's backend and the system it was wanted for.
        wanted: String,
        /// Why each wheel of the backend was passed over.
        passed_over: Vec<String>,
    },
    /// No usable MLX: what was tried, and the ways out.
    NotFound(String),
    /// A program that is needed is missing or fails.
    Tool {
        /// The program.
        tool: &'static str,
        /// What it said, or that it is missing.
        what: String,
        /// What to do.
        fix: &'static str,
    },
    /// A file is not the one that the pin records.
    Hash {
        /// The file's name.
        file: String,
        /// The pin's SHA-256.
        expected: String,
        /// The file's SHA-256.
        found: String,
    },
    /// A wheel that can't be unpacked, or that would write outside its folder.
    Archive {
        /// The wheel's name.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// The file system said no.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: an I/O error with what was being done to which path.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(what) => write!(f, "mlx-pin.toml: {what}"),
            Self::Variable { name, value, allowed } => write!(f, "{name}={value}: expected {allowed}"),
            Self::NoCache => f.write_str("no cache folder: set OXMLX_HOME (or HOME) to an absolute path"),
            Self::Platform(os) => write!(f, "oxmlx runs on Linux and macOS, not on {os}"),
            Self::NoWheel { wanted, passed_over } => {
                write!(f, "MLX has no wheel for {wanted}")?;
                for line in passed_over {
                    write!(f, "\n  {line}")?;
                }
                f.write_str("\nchoose another OXMLX_BACKEND, or set MLX_PREFIX to an own build of MLX")
            }
            Self::NotFound(report) => f.write_str(report),
            Self::Tool { tool, what, fix } => write!(f, "{tool}: {what}; {fix}"),
            Self::Hash { file, expected, found } => {
                write!(
                    f,
                    "{file} is not the pinned file: its SHA-256 is {found}, expected {expected}; nothing was kept"
                )
            }
            Self::Archive { file, what } => write!(f, "{file}: {what}; nothing was kept"),
            Self::Io { doing, path, .. } => write!(f, "{doing} {}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// An error and its sources on one line, for programs that print and stop.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

//! How the program fails: one line on standard error.

use std::error::Error;
use std::fmt;
use std::io;

/// Why a command could not do its work.
pub(crate) enum Failure {
    /// Whoever read our output is gone; nothing is wrong.
    ClosedPipe,
    /// An error of the engine.
    Engine(oxmlx_lm::Error),
    /// An error of MLX outside the engine.
    Mlx(oxmlx::Error),
    /// Reading or writing failed.
    Io(&'static str, io::Error),
    /// The command line asks for something that can't be.
    Usage(String),
}

impl From<oxmlx_lm::Error> for Failure {
    fn from(error: oxmlx_lm::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<oxmlx::Error> for Failure {
    fn from(error: oxmlx::Error) -> Self {
        Self::Mlx(error)
    }
}

impl Failure {
    /// A failed write to standard output.
    pub(crate) fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ClosedPipe } else { Self::Io("standard output", error) }
    }

    fn error(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::ClosedPipe | Self::Usage(_) => None,
            Self::Engine(error) => Some(error),
            Self::Mlx(error) => Some(error),
            Self::Io(_, error) => Some(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedPipe => f.write_str("the output was closed"),
            Self::Usage(text) => f.write_str(text),
            Self::Io(what, _) => write!(f, "{what}"),
            _ => Ok(()),
        }?;
        let mut separator = if matches!(self, Self::Io(..)) { ": " } else { "" };
        let mut cause = self.error();
        while let Some(error) = cause {
            // One line, whatever a message holds.
            write!(f, "{separator}{}", error.to_string().replace('\n', " "))?;
            separator = ": ";
            cause = error.source();
        }
        Ok(())
    }
}

/// Tells of a failure on standard error.
pub(crate) fn report(failure: &Failure) {
    eprintln!("oxmlx: {failure}");
}

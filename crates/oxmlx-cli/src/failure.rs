//! How the program fails: one line on standard error, whatever a message or a file's own words hold.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

/// Why a command could not do its work.
pub(crate) enum Failure {
    /// Whoever read our output is gone; nothing is wrong.
    ClosedPipe,
    /// An error of the engine.
    Engine(oxmlx_lm::Error),
    /// A flag's value that the engine refuses; the error's field is the flag.
    Flag(oxmlx_lm::Error),
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

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        // clap writes a paragraph each for what is wrong, tips, the usage and how to get help: the first two are wanted.
        let text = error.render().to_string();
        let wanted = text.split("\n\n").take_while(|part| !part.starts_with("Usage:"));
        let wanted = wanted.filter(|part| !part.starts_with("For more information"));
        let words: Vec<&str> = wanted.flat_map(str::split_whitespace).collect();
        let line = words.join(" ");
        Self::Usage(format!("{} (--help tells more)", line.strip_prefix("error: ").unwrap_or(&line)))
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
            Self::Engine(error) | Self::Flag(error) => Some(error),
            Self::Mlx(error) => Some(error),
            Self::Io(_, error) => Some(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = match self {
            Self::ClosedPipe => return f.write_str("the output was closed"),
            Self::Usage(text) => return f.write_str(text),
            Self::Io(what, _) => {
                f.write_str(what)?;
                ": "
            }
            // An error without a field is not about the flag itself.
            Self::Flag(error) if error.field().is_some() && error.path().is_none() => "--",
            Self::Engine(_) | Self::Flag(_) | Self::Mlx(_) => "",
        };
        let mut cause = self.error();
        while let Some(error) = cause {
            write!(f, "{separator}{error}")?;
            separator = ": ";
            cause = error.source();
        }
        Ok(())
    }
}

/// Tells of a failure on standard error.
pub(crate) fn report(failure: &Failure) {
    say(&format!("oxmlx: {failure}"));
}

/// Writes a line to standard error. That nobody reads it is no reason to fail.
pub(crate) fn say(line: &str) {
    hint(&(one_line(line) + "\n"));
}

/// Writes to standard error without ending the line.
pub(crate) fn hint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Without line breaks and without what would steer a terminal: file names and metadata are foreign text.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_control_characters_stay_on_one_line() {
        assert_eq!(one_line("a\nb\r\u{1b}[31mé\t\u{9b}"), "a b \\u{1b}[31mé \\u{9b}");
    }

    #[test]
    fn causes_follow_the_error() {
        let failure = Failure::Io("standard input", io::Error::other("deep"));
        assert_eq!(failure.to_string(), "standard input: deep");
    }
}

//! What `bench compare` is asked to do.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The options of `bench compare`.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) prompt_tokens: usize,
    pub(super) tokens: usize,
    pub(super) rounds: usize,
    pub(super) threads: usize,
    pub(super) llama_cpp: bool,
    pub(super) json: bool,
    pub(super) oxmlx: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, Error> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self {
            prompt_tokens: 64,
            tokens: 32,
            rounds: 3,
            threads: processors,
            llama_cpp: false,
            json: false,
            oxmlx: None,
            svg: None,
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| Error::Usage(format!("{option} needs a value")));
            match option.as_str() {
                "--prompt-tokens" => options.prompt_tokens = number(option, value()?, 1..=4096)?,
                // One token has no decode to measure.
                "--tokens" => options.tokens = number(option, value()?, 2..=4096)?,
                "--rounds" => options.rounds = number(option, value()?, 1..=1000)?,
                "--threads" => options.threads = number(option, value()?, 1..=processors)?,
                "--oxmlx" => options.oxmlx = Some(path(value()?)?),
                "--svg" => options.svg = Some(path(value()?)?),
                "--llama-cpp" => options.llama_cpp = true,
                "--json" => options.json = true,
                _ => Error::unexpected(std::slice::from_ref(option))?,
            }
        }
        Ok(options)
    }
}

/// A path that does not depend on the folder where a program runs.
pub(super) fn path(value: &str) -> Result<PathBuf, Error> {
    std::path::absolute(value).map_err(Error::io("resolving", Path::new(value)))
}

/// The number that an option has.
pub(super) fn number(option: &str, value: &str, allowed: std::ops::RangeInclusive<usize>) -> Result<usize, Error> {
    match value.parse() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        _ => {
            let (least, most) = allowed.into_inner();
            Err(Error::Usage(format!("{option} {value:?}: give a number from {least} to {most}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Options};

    fn parse(line: &str) -> Result<Options, Error> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_taken() {
        let options =
            parse("--prompt-tokens 9 --tokens 8 --rounds 7 --threads 1 --llama-cpp --json --oxmlx /bin/x --svg y");
        let Ok(options) = options else { panic!("{options:?}") };
        let numbers = [options.prompt_tokens, options.tokens, options.rounds, options.threads];
        assert_eq!(numbers, [9, 8, 7, 1]);
        assert!(options.llama_cpp && options.json && options.oxmlx.is_some() && options.svg.is_some());
    }

    #[test]
    fn a_number_that_measures_nothing_is_refused_and_named() {
        for line in ["--tokens 1", "--tokens", "--rounds 0", "--prompt-tokens x", "--threads 100000", "--rounds -1"] {
            let Err(Error::Usage(what)) = parse(line) else { panic!("{line} was taken") };
            assert!(what.starts_with(line.split(' ').next().unwrap_or_default()), "{what}");
        }
    }
}

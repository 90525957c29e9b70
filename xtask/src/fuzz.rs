//! `cargo xtask fuzz`: the fuzzer of `crates/oxmlx/tests/fuzz`, longer than in the tests.

use crate::error::Error;
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask fuzz [--calls N] [--seed S] [--only INDEX] [--debug]

Makes N (default: 100000) calls of the whole safe API with hostile shapes, dtypes, axes, scalars,
indices and layouts, and reads damaged GGUF, SafeTensors and NPY files, in child processes. A signal,
an abort, a panic, or no call in 10 s is a finding. What call INDEX of seed S does depends on nothing
but the two: --only INDEX makes it alone and prints its outcome. Builds in release mode; --debug
finds overflows of Rust's arithmetic as well.
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (mut calls, mut seed, mut only, mut debug) = (100_000u64, 1u64, None, false);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let mut number = || match rest.next().map(|text| text.parse::<u64>()) {
            Some(Ok(number)) => Ok(number),
            _ => Err(Error::Usage(format!("{option} takes a number"))),
        };
        match option.as_str() {
            "--calls" => calls = number()?,
            "--seed" => seed = number()?,
            "--only" => only = Some(number()?),
            "--debug" => debug = true,
            _ => return Error::unexpected(std::slice::from_ref(option)),
        }
    }
    let mut command = tree::cargo(&["test", "--locked", "--package", "oxmlx", "--test", "fuzz"]);
    if !debug {
        command.arg("--release");
    }
    command.args(["--", "--exact", "hostile_calls_end_in_values_or_errors", "--nocapture"]);
    command.env("OXMLX_FUZZ_CALLS", calls.to_string()).env("OXMLX_FUZZ_SEED", seed.to_string());
    if let Some(only) = only {
        command.env("OXMLX_FUZZ_ONLY", only.to_string());
    }
    tree::run("the fuzzer", &mut command)
}

#[cfg(test)]
mod tests {
    use super::{Error, run};

    #[test]
    fn an_option_without_its_number_is_refused() {
        for wrong in [&["--calls"][..], &["--seed", "x"], &["--only", "-1"]] {
            let arguments: Vec<String> = wrong.iter().map(|&word| word.to_owned()).collect();
            assert!(matches!(run(&arguments), Err(Error::Usage(_))), "{wrong:?}");
        }
    }
}

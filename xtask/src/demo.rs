//! `cargo xtask demo`: from a fresh checkout to a language model's answer.

use std::process::Command;

use crate::error::Error;
use crate::{setup, tree};

pub(crate) const HELP: &str = "\
Usage: cargo xtask demo [PROMPT]

Sets up MLX and the model SmolLM2-135M-Instruct, builds the binary in release mode, and streams
the model's answer to PROMPT (default: \"What is the capital of France?\"), followed by a line of statistics.
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let prompt = arguments.first().map_or("What is the capital of France?", String::as_str);
    Error::unexpected(arguments.get(1..).unwrap_or_default())?;
    if prompt.starts_with('-') {
        return Error::unexpected(arguments);
    }
    tree::compiler()?;
    let ready = setup::ready(true)?;
    tree::run("cargo build", &mut tree::cargo(&["build", "--release", "--locked", "--package", "oxmlx-cli"]))?;
    let binary = tree::target().join("release").join("oxmlx");
    let mut oxmlx = Command::new(&binary);
    oxmlx.arg("generate").arg("--model").args(ready.model).args(["--prompt", prompt]);
    tree::run("oxmlx generate", &mut oxmlx)
}

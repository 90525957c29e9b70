//! C++, C, Metal and CUDA sources are as clang-format writes them, by `.clang-format` in the root.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::files;
use super::verdict::{Verdict, Violation};
use crate::error::Error;
use crate::python::{CLANG_FORMAT, Environment};
use crate::tree;

const EXTENSIONS: [&str; 7] = ["c", "cc", "cpp", "h", "hpp", "metal", "cu"];

/// The sources; not those that `cargo xtask codegen` writes, which have long lines.
fn sources() -> Result<Vec<PathBuf>, Error> {
    let mut found = files::with_extension(&tree::root(), &EXTENSIONS)?;
    found.retain(|path| !path.iter().any(|part| part == "generated"));
    Ok(found)
}

fn tool() -> Result<Command, Error> {
    let environment = Environment::ready("clang-format", &[&CLANG_FORMAT])?;
    let mut command = Command::new(environment.python().with_file_name("clang-format"));
    command.current_dir(tree::root()).arg("--style=file").stdin(Stdio::null());
    Ok(command)
}

/// Compares each file with what clang-format makes of it.
pub(super) fn check() -> Result<Verdict, Error> {
    let mut out = Vec::new();
    let sources = sources()?;
    let mut command = tool()?;
    let told = command.args(["--dry-run", "--Werror", "--ferror-limit=1"]).args(&sources).output();
    let told = told.map_err(Error::io("running", &PathBuf::from("clang-format")))?;
    if !told.status.success() {
        let text = String::from_utf8_lossy(&told.stderr).into_owned();
        // `PATH:LINE:COLUMN: error: code should be clang-formatted [-Wclang-format-violations]`
        for line in text.lines().filter(|line| line.contains(": error: ")) {
            let place = line.split(": error: ").next().unwrap_or(line);
            let place = files::shown(&tree::root(), std::path::Path::new(place));
            out.push(Violation { rule: "clang-format", place, what: "run `cargo xtask gates --fix`".to_owned() });
        }
        if out.is_empty() {
            return Err(Error::Step { step: "clang-format".into(), status: text });
        }
    }
    Ok(Verdict::of(out, || format!("{} sources", sources.len())))
}

/// Writes each file as clang-format wants it.
pub(super) fn fix() -> Result<(), Error> {
    tree::run("clang-format", tool()?.arg("-i").args(sources()?))
}

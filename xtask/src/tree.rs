//! This source tree, and the programs that commands run in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The cargo that runs this program, in the root of the workspace and without standard input.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments).stdin(Stdio::null());
    command
}

/// Runs a program to its end, its output shown as it comes.
pub(crate) fn run(step: &str, command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_owned();
    let status = command.status().map_err(Error::io("running", Path::new(&program)))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Step { step: step.to_owned(), status: status.to_string() })
}

/// Checks that there is a C++ compiler, before minutes go into a build that can't end well.
pub(crate) fn compiler() -> Result<(), Error> {
    let compiler = std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".to_owned());
    // CXX may carry flags or a wrapper: "ccache g++".
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Error::Tool {
            tool: format!("C++ compiler {compiler:?}"),
            fix: "install one (Debian: apt-get install g++; macOS: xcode-select --install) or set CXX",
        }),
    }
}

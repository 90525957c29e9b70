//! The Python that the other programs run in: made once in the cache folder, with the versions this tree pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::mlx::world::{self, System};
use crate::tree;

const BASE: &str = include_str!("requirements.txt");
const LLAMA_CPP: &str = include_str!("requirements-llama-cpp.txt");
const VENV: &str = "install Python 3 with venv (Debian: apt-get install python3-venv; macOS: brew install python)";

/// A virtual environment with the pinned packages.
pub(super) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes what is missing. What pip has installed is noted in the folder, so that a second call asks nobody.
    pub(super) fn ready(llama_cpp: bool) -> Result<Self, Error> {
        let host = world::this_host(&System)?;
        let folder = world::cache(&System, host.os)?.join("python").join("bench");
        let environment = Self { folder };
        environment.install("requirements.txt", BASE)?;
        if llama_cpp {
            environment.install("requirements-llama-cpp.txt", LLAMA_CPP)?;
        }
        Ok(environment)
    }

    /// The interpreter.
    pub(super) fn python(&self) -> PathBuf {
        self.folder.join("bin").join("python")
    }

    /// A script of this folder, run by the interpreter, with the modules of `oracle/` to import.
    pub(super) fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.python());
        command.arg(script_path(name)).env("PYTHONPATH", tree::root().join("oracle"));
        // The environment is this command's own: nothing of the user's may come in.
        command.env_remove("PYTHONHOME").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn install(&self, name: &str, wanted: &str) -> Result<(), Error> {
        let note = self.folder.join(name);
        if self.python().exists() && fs::read_to_string(&note).is_ok_and(|noted| noted == wanted) {
            return Ok(());
        }
        if !self.python().exists() {
            let mut venv = Command::new("python3");
            venv.args(["-m", "venv"]).arg(&self.folder).stdin(Stdio::null());
            let made = venv.status().is_ok_and(|status| status.success());
            if !made {
                return Err(Error::Tool { tool: "python3 -m venv".to_owned(), fix: VENV });
            }
        }
        let compiles = if wanted == LLAMA_CPP { "; llama.cpp is compiled, which takes minutes" } else { "" };
        eprintln!("bench: installing {name} into {}{compiles}", self.folder.display());
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--requirement"]);
        pip.arg(tree::root().join("xtask/src/bench").join(name)).stdin(Stdio::null());
        tree::run("pip install", &mut pip)?;
        fs::write(&note, wanted).map_err(Error::io("writing", &note))
    }
}

/// Where a script of this folder lies.
pub(super) fn script_path(name: &str) -> PathBuf {
    tree::root().join(Path::new("xtask/src/bench/peers")).join(name)
}

#[cfg(test)]
mod tests {
    use super::BASE;
    use crate::mlx::pin::Pin;

    #[test]
    fn mlx_is_compared_with_the_release_that_the_pin_names() {
        let Ok(pin) = Pin::of_this_tree() else { panic!("the pin does not parse") };
        for package in ["mlx[cpu]", "mlx"] {
            let line = format!("{package}=={}", pin.version);
            assert!(BASE.lines().any(|text| text.split(';').next() == Some(line.as_str())), "{line}");
        }
    }
}

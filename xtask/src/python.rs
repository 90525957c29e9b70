//! Python environments in the cache folder, each made once with the versions that this tree pins: one for the programs
//! that are measured, one for the tests. Nothing of the user's own Python comes in.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::mlx::world::{self, System};
use crate::tree;

const VENV: &str = "install Python 3 with venv (Debian: apt-get install python3-venv; macOS: brew install python)";

/// The variable that tells tests which interpreter to run.
pub(crate) const TEST_VARIABLE: &str = "OXMLX_TEST_PYTHON";

/// A list of packages, as pip reads it.
pub(crate) struct Requirements {
    file: &'static str,
    text: &'static str,
    /// What the user should know before it is installed.
    remark: &'static str,
    /// Whether what these packages ask for is installed too.
    with_dependencies: bool,
}

/// What `cargo xtask bench compare` measures against.
pub(crate) const BENCH: Requirements =
    Requirements { file: "bench.txt", text: include_str!("python/bench.txt"), remark: "", with_dependencies: true };

/// What `--llama-cpp` adds to it.
pub(crate) const LLAMA_CPP: Requirements = Requirements {
    file: "llama-cpp.txt",
    text: include_str!("python/llama-cpp.txt"),
    remark: "; llama.cpp is compiled, which takes minutes",
    with_dependencies: true,
};

/// What the tests need.
pub(crate) const TEST: Requirements =
    Requirements { file: "test.txt", text: include_str!("python/test.txt"), remark: "", with_dependencies: true };

/// mlx-lm for the tests: its modules that need no more than MLX.
pub(crate) const TEST_MLX_LM: Requirements = Requirements {
    file: "test-mlx-lm.txt",
    text: include_str!("python/test-mlx-lm.txt"),
    remark: "",
    with_dependencies: false,
};

/// A C++ compiler for macOS that runs anywhere.
pub(crate) const ZIG: Requirements = Requirements {
    file: "zig.txt",
    text: include_str!("python/zig.txt"),
    remark: "; 90 MB are fetched",
    with_dependencies: true,
};

/// What `cargo xtask gates` compares C++ with.
pub(crate) const CLANG_FORMAT: Requirements = Requirements {
    file: "clang-format.txt",
    text: include_str!("python/clang-format.txt"),
    remark: "",
    with_dependencies: true,
};

/// A virtual environment with pinned packages.
pub(crate) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment of this name, with what is missing installed. What pip has installed is noted in the folder, so that a
    /// second call asks nobody.
    pub(crate) fn ready(name: &str, lists: &[&Requirements]) -> Result<Self, Error> {
        let host = world::this_host(&System)?;
        let parent = world::cache(&System, host.os)?.join("python");
        fs::create_dir_all(&parent).map_err(Error::io("creating", &parent))?;
        let lock = parent.join(format!(".{name}.lock"));
        let lock = File::create(&lock).map_err(Error::io("creating", &lock))?;
        // Two at once would install into each other. An error means a file system without locks: then there is no help.
        let _ = lock.lock();
        let environment = Self { folder: parent.join(name) };
        for list in lists {
            environment.install(list)?;
        }
        Ok(environment)
    }

    /// The interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("bin").join("python")
    }

    /// A script, run by the interpreter, with the modules of `oracle/` to import.
    pub(crate) fn script(&self, path: &Path) -> Command {
        let mut command = Command::new(self.python());
        command.arg(path).env("PYTHONPATH", tree::root().join("oracle"));
        command.env_remove("PYTHONHOME").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// The interpreter with these arguments, and nothing of the user's own Python.
    pub(crate) fn script_of(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.python());
        command.args(arguments).env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        command
    }

    fn install(&self, wanted: &Requirements) -> Result<(), Error> {
        let note = self.folder.join(wanted.file);
        if self.python().exists() && fs::read_to_string(&note).is_ok_and(|noted| noted == wanted.text) {
            return Ok(());
        }
        if !self.python().exists() {
            let mut venv = Command::new("python3");
            venv.args(["-m", "venv", "--clear"]).arg(&self.folder).stdin(Stdio::null());
            let made = venv.status().is_ok_and(|status| status.success());
            if !made {
                return Err(Error::Tool { tool: "python3 -m venv".to_owned(), fix: VENV });
            }
        }
        eprintln!("setup: installing {} into {}{}", wanted.file, self.folder.display(), wanted.remark);
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--requirement"]);
        pip.arg(tree::root().join("xtask/src/python").join(wanted.file)).stdin(Stdio::null());
        if !wanted.with_dependencies {
            pip.arg("--no-deps");
        }
        tree::run("pip install", &mut pip)?;
        fs::write(&note, wanted.text).map_err(Error::io("writing", &note))
    }
}

#[cfg(test)]
mod tests {
    use super::{BENCH, TEST, TEST_MLX_LM};
    use crate::mlx::pin::Pin;

    #[test]
    fn mlx_is_compared_with_the_release_that_the_pin_names() {
        let Ok(pin) = Pin::of_this_tree() else { panic!("the pin does not parse") };
        for list in [BENCH, TEST] {
            for package in ["mlx[cpu]", "mlx"] {
                let line = format!("{package}=={}", pin.version);
                assert!(list.text.lines().any(|text| text.split(';').next() == Some(line.as_str())), "{line}");
            }
        }
    }
    #[test]
    fn tests_and_comparisons_go_by_one_mlx_lm() {
        let pinned = |text: &'static str| text.lines().find(|line| line.starts_with("mlx-lm=="));
        assert!(pinned(BENCH.text).is_some());
        assert_eq!(pinned(BENCH.text), pinned(TEST_MLX_LM.text));
    }
}

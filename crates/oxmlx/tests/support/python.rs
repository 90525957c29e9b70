//! Python MLX, for tests that exchange files with it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter that has MLX and numpy: `OXMLX_TEST_PYTHON`, else that of oxmlx's cache folder.
pub(crate) fn interpreter() -> PathBuf {
    let python = path();
    assert!(python.is_file(), "no {}: run `cargo xtask setup --tests`, or `cargo xtask test`", python.display());
    python
}

fn path() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("OXMLX_TEST_PYTHON").unwrap_or_else(|| {
        let home = || set("HOME").expect("HOME is set");
        let caches = match cfg!(target_os = "macos") {
            true => home().join("Library/Caches"),
            false => set("XDG_CACHE_HOME").unwrap_or_else(|| home().join(".cache")),
        };
        set("OXMLX_HOME").unwrap_or_else(|| caches.join("oxmlx")).join("python/test/bin/python")
    })
}

/// Whether tests that need the interpreter are to be left out: in the bundle for machines without network (`OXMLX_TEST_BUNDLE=1`), where
/// it is not there. Tells it.
#[allow(dead_code, reason = "not every program that includes this is in the bundle")]
pub(crate) fn is_left_out() -> bool {
    let in_bundle = std::env::var_os("OXMLX_TEST_BUNDLE").is_some_and(|value| value == "1");
    let left_out = in_bundle && !path().is_file();
    if left_out {
        println!("SKIPPED a test: no {} here", path().display());
    }
    left_out
}

/// Runs a script in `folder` and gives what it prints; the test fails with its error output when it fails.
pub(crate) fn run(script: &str, folder: &Path) -> String {
    run_with(["-c", script], folder)
}

/// As [`run`], with arguments for the interpreter.
pub(crate) fn run_with(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, folder: &Path) -> String {
    let mut command = Command::new(interpreter());
    command.args(arguments).current_dir(folder).env_remove("PYTHONHOME").env_remove("PYTHONPATH");
    // The loader's path that cargo sets for our libmlx is not for Python's own.
    command.env_remove("LD_LIBRARY_PATH").env_remove("DYLD_FALLBACK_LIBRARY_PATH");
    let output = command.output().unwrap();
    assert!(output.status.success(), "python:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

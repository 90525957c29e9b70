//! Real consumers: NumPy and, where it is installed, PyTorch; a C program on MLX's C API; a C++ program on the public header.

use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(dead_code, reason = "only the interpreter is needed here")]
#[path = "../../oxmlx/tests/support/python.rs"]
mod python;

const MLX_INCLUDE: &str = env!("OXC_MLX_INCLUDE");
const MLX_LIB: &str = env!("OXC_MLX_LIB");
const OXMLX_INCLUDE: &str = env!("OXC_OXMLX_INCLUDE");

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// The library of this crate, which cargo built beside this test.
fn library() -> PathBuf {
    let name = if cfg!(target_os = "macos") { "liboxmlx_consumer.dylib" } else { "liboxmlx_consumer.so" };
    let beside = std::env::current_exe().unwrap().with_file_name(name);
    assert!(beside.is_file(), "cargo built no {}", beside.display());
    beside
}

/// Runs a program to its end, and gives what it printed; the test fails when it fails.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn compiler(variable: &str, default: &str) -> Command {
    let named = std::env::var(variable).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| default.to_owned());
    // It may carry flags or a wrapper: "ccache g++".
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(default));
    command.args(words);
    command
}

fn cpp() -> Command {
    let mut command = compiler("CXX", "c++");
    command.args(["-std=c++20", "-O0", "-g", "-I", OXMLX_INCLUDE, "-isystem", MLX_INCLUDE]);
    command
}

/// A program of this test, which finds libmlx and this crate's library.
fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    let folders = [Path::new(MLX_LIB).to_path_buf(), library().parent().unwrap().to_path_buf()];
    let name = if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    command.env(name, std::env::join_paths(folders).unwrap());
    command
}

fn script(name: &str) -> Command {
    let mut command = program(&python::interpreter());
    command.arg(here("python").join(name)).arg(library());
    command.env_remove("PYTHONHOME").env_remove("PYTHONPATH").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

#[test]
fn numpy_and_oxmlx_read_each_other_without_a_copy() {
    assert_eq!(run(&mut script("numpy_exchange.py")).matches(" ok").count(), 5);
}

/// The wheels of PyTorch are too large for every run: this runs where it is installed.
#[test]
fn pytorch_and_oxmlx_read_each_other_without_a_copy_where_it_is_installed() {
    let there = Command::new(python::interpreter()).args(["-c", "import torch"]).output().unwrap().status.success();
    if there {
        assert_eq!(run(script("torch_exchange.py").arg("cpu")).matches(" ok").count(), 4);
    } else {
        eprintln!("no torch in the tests' Python: not run");
    }
}

#[test]
fn a_c_program_on_mlx_c_shares_arrays_with_oxmlx() {
    let folder = tempfile::tempdir().unwrap();
    let (api, main, binary) =
        (folder.path().join("api.o"), folder.path().join("main.o"), folder.path().join("program"));
    run(cpp().arg("-c").arg(here("mlx_c/mlx_c.cpp")).arg("-o").arg(&api));
    let mut c = compiler("CC", "cc");
    run(c.args(["-std=c11", "-Wall", "-Werror", "-c"]).arg(here("mlx_c/program.c")).arg("-o").arg(&main));
    let mut link = cpp();
    link.arg(&main).arg(&api).arg(library()).arg("-L").arg(MLX_LIB).arg("-lmlx").arg("-o").arg(&binary);
    run(&mut link);
    assert!(run(&mut program(&binary)).contains("all holds"));
}

/// With the sanitizers where the compiler has them.
#[test]
fn a_cpp_program_uses_the_public_header() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("storage");
    let build = |sanitizers: &[&str]| {
        let mut command = cpp();
        command.args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]).args(sanitizers);
        command.arg(here("cpp/storage.cpp")).arg("-L").arg(MLX_LIB).arg("-lmlx").arg("-o").arg(&binary);
        command
    };
    let checked = ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"];
    let mut sanitized = build(&checked);
    if !sanitized.output().unwrap().status.success() {
        run(&mut build(&[]));
    }
    // MLX keeps its streams and caches for ever.
    let output = run(program(&binary).env("ASAN_OPTIONS", "detect_leaks=0"));
    assert!(output.contains("0 failures"), "{output}");
}

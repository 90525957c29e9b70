//! `cargo xtask macos-headers`: the public C++ header against macOS' MLX, on any system: compiled, not linked, by zig's C++ compiler for
//! arm64 macOS.

use std::path::PathBuf;
use std::process::Stdio;

use crate::error::Error;
use crate::mlx::pin::Pin;
use crate::mlx::platform::{self, Arch, Backend, Host, Os};
use crate::mlx::provision::{self, Pip};
use crate::mlx::world::{self, System};
use crate::python::{Environment, ZIG};
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask macos-headers

Compiles the C++ test program of the public header oxmlx/storage.h with the headers of the pinned
macOS wheel, by zig's C++ compiler from PyPI. Both are fetched once into the cache folder. On a Mac
there is nothing to do: the test itself does that.
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    Error::unexpected(arguments)?;
    compile()
}

/// Compiles the C++ test program of `oxmlx/storage.h` with the headers of the macOS wheel. On a Mac the test itself does that.
pub(crate) fn compile() -> Result<(), Error> {
    let host = world::this_host(&System)?;
    if host.os == Os::MacOs {
        return Ok(());
    }
    let include = prefix(&host)?.join("include");
    let zig = Environment::ready("zig", &[&ZIG])?;
    let crates = tree::root().join("crates");
    let mut compiler = zig.script_of(&["-m", "ziglang", "c++", "-target", "aarch64-macos.14.0", "-std=c++20", "-c"]);
    compiler.args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-I"]).arg(crates.join("oxmlx-sys/include"));
    compiler.arg("-isystem").arg(include).arg(crates.join("oxmlx-consumer/tests/cpp/storage.cpp"));
    compiler.arg("-o").arg(tree::target().join("storage-macos.o"));
    tree::run("the header oxmlx/storage.h for macOS", compiler.stdin(Stdio::null()))
}

/// Headers and libraries of the pinned wheel for the oldest macOS.
pub(crate) fn prefix(host: &Host) -> Result<PathBuf, Error> {
    let pin = Pin::of_this_tree()?;
    let mac = Host { os: Os::MacOs, arch: Arch::Aarch64, version: None, musl: false };
    let wheel = platform::choose(&pin, Backend::Metal, &mac)?;
    let folder = world::cache(&System, host.os)?.join("mlx").join(&pin.version).join(Backend::Metal.name());
    provision::provision(wheel, &folder, &Pip)?;
    Ok(folder.join("mlx"))
}

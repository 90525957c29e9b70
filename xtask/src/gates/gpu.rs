//! Kernel sources through the compilers of their vendors, where those are there.
//!
//! A source that MLX completes (it writes the signature around a body) can't be compiled as it stands: such a manifest says
//! `body = true` for the kernel, and the file is compiled by the tests that run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::files;
use super::verdict::{Verdict, Violation};
use crate::error::Error;
use crate::tree;

/// The versions of the Metal language that sources must be good for.
const METAL: [&str; 2] = ["metal3.0", "metal4.0"];

/// The sources of one language that can be compiled as they stand, and how many can't.
fn sources(extension: &str) -> Result<(Vec<PathBuf>, usize), Error> {
    let all = files::with_extension(&tree::root(), &[extension])?;
    let (bodies, whole): (Vec<_>, Vec<_>) = all.into_iter().partition(|path| is_body(path));
    Ok((whole, bodies.len()))
}

/// Whether the manifest says that this is the body of a function only.
fn is_body(path: &Path) -> bool {
    let manifest = path.with_file_name("manifest.toml");
    let (Ok(text), Some(name)) = (std::fs::read_to_string(manifest), path.file_name().and_then(|n| n.to_str())) else {
        return false;
    };
    let table: toml::Table = text.parse().unwrap_or_default();
    let mut kernels = table.get("kernel").and_then(toml::Value::as_array).into_iter().flatten();
    kernels.any(|kernel| {
        let is = |key: &str| kernel.get(key).and_then(toml::Value::as_str) == Some(name);
        (is("metal") || is("cuda")) && kernel.get("body").and_then(toml::Value::as_bool) == Some(true)
    })
}

fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Compiles every `.metal` file with Xcode's compiler.
pub(super) fn metal() -> Result<Verdict, Error> {
    let (sources, bodies) = sources("metal")?;
    let xcrun = answers("xcrun", &["-sdk", "macosx", "--find", "metal"]);
    compile("metal", &sources, bodies, xcrun, "there is no Xcode with the Metal compiler", |source| {
        METAL
            .iter()
            .map(|standard| {
                let mut command = Command::new("xcrun");
                command.args(["-sdk", "macosx", "metal", &format!("-std={standard}"), "-Werror", "-c"]).arg(source);
                (*standard, command)
            })
            .collect()
    })
}

/// Compiles every `.cu` file with nvcc.
pub(super) fn cuda() -> Result<Verdict, Error> {
    let (sources, bodies) = sources("cu")?;
    compile("cuda", &sources, bodies, answers("nvcc", &["--version"]), "there is no nvcc", |source| {
        let mut command = Command::new("nvcc");
        command.args(["-std=c++17", "-arch=sm_80", "-ptx"]).arg(source);
        vec![("ptx", command)]
    })
}

fn compile(
    rule: &'static str,
    sources: &[PathBuf],
    bodies: usize,
    there: bool,
    why_not: &str,
    commands: impl Fn(&Path) -> Vec<(&'static str, Command)>,
) -> Result<Verdict, Error> {
    if sources.is_empty() {
        return Ok(Verdict::Passed(format!("no whole sources; {bodies} bodies, which their tests compile")));
    }
    if !there {
        return Ok(Verdict::Skipped(format!("{} {rule} sources are not compiled: {why_not}", sources.len())));
    }
    let mut out = Vec::new();
    let object = tree::target().join(format!("gates-{rule}.o"));
    for source in sources {
        for (standard, mut command) in commands(source) {
            let ran = command.arg("-o").arg(&object).stdin(Stdio::null()).output();
            let ran = ran.map_err(Error::io("compiling", source))?;
            if !ran.status.success() {
                let what = format!("{standard}: {}", String::from_utf8_lossy(&ran.stderr).trim());
                out.push(Violation { rule, place: files::shown(&tree::root(), source), what });
            }
        }
    }
    Ok(Verdict::of(out, || format!("{} sources compiled", sources.len())))
}

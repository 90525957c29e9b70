//! `cargo xtask cuda-bundle`: the test programs with all they read, in one folder for a machine with a GPU and no network.
//!
//! A program that was linked with MLX's CPU library runs with the CUDA library of the same release: the loader's path decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use crate::error::Error;
use crate::mlx::pin::Pin;
use crate::mlx::platform::{self, Backend};
use crate::mlx::provision::{self, Pip};
use crate::mlx::world::{self, System};
use crate::{setup, tree};

pub(crate) const HELP: &str = "\
Usage: cargo xtask cuda-bundle [FOLDER] [--cuda12]

Builds the program oxmlx and the tests of oxmlx, oxmlx-kernels and oxmlx-lm, and puts them, all they
read, MLX's CUDA library of the pinned release and a script into FOLDER (default:
target/cuda-bundle). On a Linux machine with an NVIDIA GPU, its driver and the CUDA libraries
(NVIDIA=the folder nvidia/ of a Python environment that has them; found by itself where python3 has it):

    FOLDER/run.sh gpu            every test program and every small model; one line each, also in
                                 FOLDER/summary-gpu.txt; ends with 1 when one failed
    FOLDER/run.sh cpu            the same with the processor as default device
    FOLDER/run.sh gpu threads    test programs of these names only

  --cuda12        MLX for CUDA 12, not 13

OXMLX_STRESS=1 makes the long runs.
";

/// What tests read beside themselves. Its path is compiled in, so that the script lays it there again.
const READ: [&str; 3] = ["fixtures", "docs", "crates"];

/// Headers that MLX's CUDA library compiles with at run time, beside its library.
const HEADERS: [&str; 3] = ["cccl", "cute", "cutlass"];

const CRATES: [&str; 4] = ["oxmlx", "oxmlx-kernels", "oxmlx-lm", "oxmlx-cli"];

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (options, folders): (Vec<String>, Vec<String>) =
        arguments.iter().cloned().partition(|word| word.starts_with('-'));
    let unknown: Vec<String> = options.iter().filter(|option| *option != "--cuda12").cloned().collect();
    Error::unexpected(&unknown)?;
    Error::unexpected(folders.get(1..).unwrap_or_default())?;
    let folder = match folders.first() {
        Some(folder) => std::path::absolute(folder).map_err(Error::io("resolving", Path::new(folder)))?,
        None => tree::target().join("cuda-bundle"),
    };
    setup::ready(false)?;
    if folder.exists() && !folder.join("run.sh").is_file() {
        return Err(Error::Usage(format!("{} is there and is no earlier bundle: remove it first", folder.display())));
    }
    let library = library(if options.is_empty() { Backend::Cuda13 } else { Backend::Cuda12 })?;
    let programs = build()?;
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Error::io("removing", &folder))?;
    }
    for (place, program) in programs {
        let place = folder.join(place);
        if place.exists() {
            return Err(Error::Bridge(format!("two programs would be {}: rename a test", place.display())));
        }
        copy(&program, &place)?;
    }
    for read in READ {
        copy_all(&tree::root().join(read), &folder.join("tree").join(read))?;
    }
    // As it lies in the wheel: the library finds what is beside it by relative paths.
    copy_all(&library.join("mlx/lib"), &folder.join("cuda/mlx/lib"))?;
    for name in HEADERS.map(|name| format!("mlx/include/{name}")) {
        copy_all(&library.join(&name), &folder.join("cuda").join(&name))?;
    }
    for beside in fs::read_dir(&library).map_err(Error::io("reading", &library))?.flatten() {
        if beside.file_name().to_string_lossy().ends_with(".libs") {
            copy_all(&beside.path(), &folder.join("cuda").join(beside.file_name()))?;
        }
    }
    let script = folder.join("run.sh");
    fs::write(&script, script_for(&tree::root())).map_err(Error::io("writing", &script))?;
    tree::run("chmod", std::process::Command::new("chmod").arg("+x").arg(&script))?;
    println!("{}", folder.display());
    Ok(())
}

/// The unpacked wheel of MLX's CUDA library, in the cache folder.
fn library(backend: Backend) -> Result<PathBuf, Error> {
    let (pin, host) = (Pin::of_this_tree()?, world::this_host(&System)?);
    let wheel = platform::choose(&pin, backend, &host)?;
    let folder = world::cache(&System, host.os)?.join("mlx").join(&pin.version).join(backend.name());
    eprintln!("cuda-bundle: MLX {} {backend}: {}", pin.version, folder.display());
    provision::provision(wheel, &folder, &Pip)?;
    Ok(folder)
}

/// Builds what the bundle runs: each program with its place in the bundle.
fn build() -> Result<Vec<(PathBuf, PathBuf)>, Error> {
    let mut found = Vec::new();
    for arguments in [&["test", "--no-run", "--tests"][..], &["build", "--bins"]] {
        let mut build = tree::cargo(arguments);
        build.args(["--locked", "--message-format=json"]).stderr(Stdio::inherit());
        CRATES.iter().for_each(|name| {
            build.args(["-p", name]);
        });
        let output = build.output().map_err(Error::io("running", Path::new("cargo")))?;
        if !output.status.success() {
            return Err(Error::Step { step: "cargo build".into(), status: output.status.to_string() });
        }
        found.extend(programs(&String::from_utf8_lossy(&output.stdout)));
    }
    // The program itself is built by both.
    found.sort();
    found.dedup();
    Ok(found)
}

/// The programs that cargo says it built, with their places: `bin/oxmlx`, `tests/threads`. Not the tests of the program itself, which
/// need cargo's folders.
fn programs(messages: &str) -> Vec<(PathBuf, PathBuf)> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let placed = parsed.filter_map(|message| {
        let (target, profile, executable) = (message.target?, message.profile?, message.executable?);
        let is = |kind: &str| target.kind.iter().any(|of| of == kind);
        let place = match profile.test {
            true if is("bin") || target.name == "cli" => return None,
            true => Path::new("tests").join(&target.name),
            false if is("bin") => Path::new("bin").join(&target.name),
            false => return None,
        };
        Some((place, executable))
    });
    placed.collect()
}

/// The script. The programs look for the tree where it was compiled; a link there leads to the bundle's copy.
fn script_for(root: &Path) -> String {
    SCRIPT.replace("@ROOT@", &root.display().to_string())
}

const SCRIPT: &str = r#"#!/usr/bin/env bash
# Runs the bundle: run.sh [gpu|cpu] [NAME...]. NVIDIA=FOLDER: the CUDA libraries, as a Python environment has them (nvidia/*/lib).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
device=${1:-gpu}
shift || true
if [[ -z ${NVIDIA:-} ]]; then
    NVIDIA=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
fi
# The library looks for them beside itself.
if [[ -n $NVIDIA ]]; then ln -sfn "$NVIDIA" "$here/cuda/nvidia"; fi
# TF32 has 10 bits: products would be compared with what they can't be.
export LD_LIBRARY_PATH="$here/cuda/mlx/lib:${LD_LIBRARY_PATH:-}" OXMLX_TEST_DEVICE="$device" MLX_ENABLE_TF32=0
# What setup fetches elsewhere, Python with MLX and the test model, may be missing here: the tests that need it tell so.
export OXMLX_TEST_BUNDLE=1
root='@ROOT@'
if [[ ! -e $root/fixtures ]]; then
    mkdir -p "$(dirname "$root")" && ln -sfn "$here/tree" "$root"
fi
mkdir -p "$here/logs-$device"
summary=$here/summary-$device.txt
failed=0
tell() { echo "$*" | tee -a "$summary"; }
one() { # NAME COMMAND...
    local name=$1 log=$here/logs-$device/${1//\//-}.log start=$SECONDS verdict=ok
    shift
    timeout "${LIMIT:-900}" "$@" >"$log" 2>&1 || { verdict="FAILED ($?)"; failed=1; }
    tell "$name: $verdict, $((SECONDS - start)) s; $(grep -h '^test result' "$log" | tail -1) $(grep -ch '^SKIPPED' "$log" || true) skipped"
    grep -h '^test .* FAILED$' "$log" | sed 's/^/    /' | tee -a "$summary"
}
: >"$summary"
tell "$(date -u +%FT%TZ) $device; $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)"
"$here/bin/oxmlx" info 2>&1 | tee -a "$summary"
tests=("$@")
if ((${#tests[@]} == 0)); then
    tests=($(cd "$here/tests" && ls))
    if [[ $device == gpu ]]; then
        for model in "$here"/tree/fixtures/models/*/; do
            one "verify/$(basename "$model")" "$here/bin/oxmlx" verify "$model" "$model/expected.safetensors"
        done
    fi
fi
for test in "${tests[@]}"; do
    one "$test" "$here/tests/$test" --nocapture
done
tell "$([[ $failed == 0 ]] && echo 'all passed' || echo 'some failed')"
exit $failed
"#;

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(Error::io("creating", parent))?;
    }
    fs::copy(from, to).map_err(Error::io("copying", from))?;
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(from).map_err(Error::io("reading", from))?.flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy_all(&from, &to)? } else { copy(&from, &to)? }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::programs;

    #[test]
    fn test_programs_are_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"oxmlx","kind":["lib"]},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","target":{"name":"threads","kind":["test"]},"profile":{"test":true},"executable":"/x/threads-1"}
{"reason":"compiler-artifact","target":{"name":"cli","kind":["test"]},"profile":{"test":true},"executable":"/x/cli-1"}
{"reason":"compiler-artifact","target":{"name":"oxmlx","kind":["bin"]},"profile":{"test":false},"executable":"/x/oxmlx"}
not json
{"reason":"build-finished","success":true}"#;
        let found = programs(messages);
        let places: Vec<_> = found.iter().map(|(place, program)| (place.to_str(), program.to_str())).collect();
        let (bin, test) = ((Some("bin/oxmlx"), Some("/x/oxmlx")), (Some("tests/threads"), Some("/x/threads-1")));
        assert_eq!(places, [test, bin]);
    }
}

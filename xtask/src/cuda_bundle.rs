//! `cargo xtask cuda-bundle`: the test programs with all they read, in one folder for a machine with a GPU and no network.
//!
//! A program that was linked with MLX's CPU library runs with the CUDA library of the same release: the loader's path decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use crate::error::Error;
use crate::{setup, tree};

pub(crate) const HELP: &str = "\
Usage: cargo xtask cuda-bundle [FOLDER]

Builds the tests of oxmlx, oxmlx-kernels and oxmlx-lm and puts the programs, the fixtures and a script
into FOLDER (default: target/cuda-bundle). On a Linux machine with an NVIDIA GPU and the packages
mlx-cuda-12 or -13 and mlx unpacked to MLX (the folder that holds lib/libmlx.so):

    FOLDER/run.sh MLX gpu        every test program; prints one line each, ends with 1 when one failed
    FOLDER/run.sh MLX cpu        the same with the processor as default device

OXMLX_STRESS=1 makes the long runs.
";

/// What a test of the bundle reads beside itself. Its path is compiled in, so that the script lays it there again.
const READ: [&str; 2] = ["fixtures", "crates/oxmlx-sys/src/generated"];

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
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    Error::unexpected(arguments.get(1..).unwrap_or_default())?;
    let folder = match arguments.first() {
        Some(option) if option.starts_with('-') => return Error::unexpected(arguments),
        Some(folder) => std::path::absolute(folder).map_err(Error::io("resolving", Path::new(folder)))?,
        None => tree::target().join("cuda-bundle"),
    };
    setup::ready(false)?;
    if folder.exists() && !folder.join("run.sh").is_file() {
        return Err(Error::Usage(format!("{} is there and is no earlier bundle: remove it first", folder.display())));
    }
    let packages = ["-p", "oxmlx", "-p", "oxmlx-kernels", "-p", "oxmlx-lm"];
    let mut build = tree::cargo(&["test", "--no-run", "--locked", "--tests", "--message-format=json"]);
    build.args(packages).stderr(Stdio::inherit());
    let output = build.output().map_err(Error::io("running", Path::new("cargo")))?;
    if !output.status.success() {
        return Err(Error::Step { step: "cargo test --no-run".into(), status: output.status.to_string() });
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Error::io("removing", &folder))?;
    }
    for (name, program) in programs(&String::from_utf8_lossy(&output.stdout)) {
        copy(&program, &folder.join("tests").join(name))?;
    }
    for read in READ {
        copy_all(&tree::root().join(read), &folder.join("tree").join(read))?;
    }
    let script = folder.join("run.sh");
    fs::write(&script, script_for(&tree::root())).map_err(Error::io("writing", &script))?;
    tree::run("chmod", std::process::Command::new("chmod").arg("+x").arg(&script))?;
    println!("{}", folder.display());
    Ok(())
}

/// The test programs that cargo says it built, by name.
fn programs(messages: &str) -> Vec<(String, PathBuf)> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let tests = parsed.filter(|message| message.profile.as_ref().is_some_and(|profile| profile.test));
    tests.filter_map(|message| Some((message.target?.name, message.executable?))).collect()
}

/// The script. The programs look for the tree where it was compiled; a link there leads to the bundle's copy.
fn script_for(root: &Path) -> String {
    format!(
        r#"#!/usr/bin/env bash
# Runs every test program of the bundle: run.sh MLX [gpu|cpu]. MLX holds lib/libmlx.so.
set -uo pipefail
here=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
mlx=${{1:?usage: run.sh MLX [gpu|cpu]}}
export LD_LIBRARY_PATH="$mlx/lib:${{LD_LIBRARY_PATH:-}}" OXMLX_TEST_DEVICE="${{2:-gpu}}"
root='{}'
if [[ ! -e $root/fixtures ]]; then
    mkdir -p "$(dirname "$root")" && ln -sfn "$here/tree" "$root"
fi
failed=0
for test in "$here"/tests/*; do
    start=$SECONDS
    if timeout 900 "$test" >"$here/$(basename "$test").log" 2>&1; then verdict=ok; else verdict="FAILED ($?)"; failed=1; fi
    echo "$(basename "$test"): $verdict, $((SECONDS - start)) s; $(grep '^test result' "$here/$(basename "$test").log")"
done
exit $failed
"#,
        root.display()
    )
}

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
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"oxmlx"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","target":{"name":"threads"},"profile":{"test":true},"executable":"/x/threads-1"}
not json
{"reason":"build-finished","success":true}"#;
        assert_eq!(programs(messages), [("threads".to_owned(), "/x/threads-1".into())]);
    }
}

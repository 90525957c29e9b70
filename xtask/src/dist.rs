//! `cargo xtask dist`: the binary with the libraries it loads, in one folder that can be moved anywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::{setup, tree};

pub(crate) const HELP: &str = "\
Usage: cargo xtask dist [FOLDER]

Builds the binary in release mode and puts it, MLX and the libraries MLX loads into FOLDER
(default: target/dist/oxmlx), and runs it once. The binary finds them by a path relative to
itself: move or copy the folder as a whole. The system it is moved to needs the C++ runtime and a C
library at least as new as this one's; for a CUDA backend it needs the CUDA libraries too.
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    Error::unexpected(arguments.get(1..).unwrap_or_default())?;
    let folder = match arguments.first() {
        Some(option) if option.starts_with('-') => return Error::unexpected(arguments),
        Some(folder) => std::path::absolute(folder).map_err(Error::io("resolving", Path::new(folder)))?,
        None => tree::target().join("dist").join("oxmlx"),
    };
    tree::compiler()?;
    let ready = setup::ready(false)?;
    if folder.exists() && !folder.join("bin/oxmlx").is_file() {
        return Err(Error::Usage(format!("{} is there and is no earlier dist: remove it first", folder.display())));
    }

    // `OXMLX_DIST` tells the binary's build script to leave this machine's own paths out of it.
    let mut build = tree::cargo(&["build", "--release", "--locked", "--package", "oxmlx-cli"]);
    tree::run("cargo build", build.env("OXMLX_DIST", "1"))?;

    let part = folder.with_extension("part");
    for old in [&part, &folder] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(Error::io("removing", old))?;
        }
    }
    copy_file(&tree::target().join("release/oxmlx"), &part.join("bin/oxmlx"))?;
    for file in files(&ready.prefix.lib)? {
        let name = file.file_name().unwrap_or_default().to_owned();
        let text = name.to_string_lossy();
        let wanted = text.starts_with("libmlx") || text.starts_with("libjaccl") || text.ends_with(".metallib");
        if wanted && !text.ends_with(".a") {
            copy_file(&file, &part.join("mlx/lib").join(name))?;
        }
    }
    for beside in ready.prefix.beside.iter().filter(|path| path.extension().is_some_and(|end| end == "libs")) {
        for file in files(beside)? {
            let name = beside.file_name().unwrap_or_default();
            copy_file(&file, &part.join(name).join(file.file_name().unwrap_or_default()))?;
        }
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy_file(&tree::root().join(licence), &part.join(licence))?;
    }
    fs::rename(&part, &folder).map_err(Error::io("moving into place", &folder))?;

    // Without cargo's loader path: the binary has to find everything by itself.
    let mut info = Command::new(folder.join("bin/oxmlx"));
    info.arg("info").env_remove("LD_LIBRARY_PATH").env_remove("DYLD_FALLBACK_LIBRARY_PATH");
    tree::run("the folder's own oxmlx info", info.stdin(Stdio::null()).stdout(Stdio::null()))?;
    println!("{}", folder.join("bin/oxmlx").display());
    Ok(())
}

/// The files of a folder, links followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::io("reading", folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(Error::io("creating", parent))?;
    }
    fs::copy(from, to).map_err(Error::io("copying", from))?;
    Ok(())
}

//! The files of the tree that gates look at.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Folders that hold nothing of ours: what was built, and what begins with a dot.
fn skipped(name: &str) -> bool {
    name == "target" || name.starts_with("target-") || name.starts_with('.')
}

/// All files below `folder` with one of these extensions, in order.
pub(super) fn with_extension(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    collect(folder, &mut found)?;
    found.retain(|path| path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)));
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("reading", folder))?.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            found.push(path);
        } else if !skipped(&entry.file_name().to_string_lossy()) {
            collect(&path, found)?;
        }
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("reading", path))
}

/// The path as people write it: from the root of the tree, with slashes.
pub(super) fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string().replace('\\', "/")
}

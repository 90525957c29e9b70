//! A copy of a prefix by symbolic links inside the build's own output folder.
//!
//! Cargo puts search paths inside its target folder into the loader's path of everything it runs, so that `cargo run`
//! and `cargo test` of any dependent crate find MLX. The links keep the wheel's relative places, because the library
//! names its neighbours by `$ORIGIN/../../mlx_cpu.libs`, and Metal kernels and CUDA headers by their place beside it.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::prefix::Prefix;

/// Lays the links under `folder/mlx` and gives the folder that holds the library; what was there before goes.
///
/// # Errors
/// [`Error::Io`] naming the path.
pub fn lay(prefix: &Prefix, folder: &Path) -> Result<PathBuf, Error> {
    let tree = folder.join("mlx-mirror");
    if tree.symlink_metadata().is_ok() {
        std::fs::remove_dir_all(&tree).map_err(Error::io("removing", &tree))?;
    }
    let (root, lib) = (tree.join("mlx"), tree.join("mlx/lib"));
    std::fs::create_dir_all(&lib).map_err(Error::io("creating", &lib))?;
    link(&prefix.include, &root.join("include"))?;
    for entry in std::fs::read_dir(&prefix.lib).map_err(Error::io("reading", &prefix.lib))?.flatten() {
        // A prefix such as /usr/local holds other people's libraries too.
        let ours =
            |name: &str| name.starts_with("libmlx") || name.starts_with("libjaccl") || name.ends_with(".metallib");
        if entry.file_name().to_str().is_some_and(ours) {
            link(&entry.path(), &lib.join(entry.file_name()))?;
        }
    }
    for beside in &prefix.beside {
        if let Some(name) = beside.file_name() {
            link(beside, &tree.join(name))?;
        }
    }
    Ok(lib)
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> Result<(), Error> {
    std::os::unix::fs::symlink(to, at).map_err(Error::io("linking", at))
}

#[cfg(not(unix))]
fn link(_: &Path, at: &Path) -> Result<(), Error> {
    Err(Error::io("linking", at)(std::io::ErrorKind::Unsupported.into()))
}

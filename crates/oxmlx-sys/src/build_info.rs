//! What the build script found and stamped into this crate, and the same facts of the library that was loaded.

use std::path::PathBuf;

use crate::runtime;

#[path = "../build/probe.rs"]
#[allow(dead_code, missing_docs, reason = "shared with the build script, which uses more of it")]
mod probe;

/// The MLX release that the project pins.
pub const PINNED_VERSION: &str = match option_env!("OXMLX_MLX_VERSION") {
    Some(version) => version,
    None => "unknown",
};

/// The backend that the library was chosen for: `cpu`, `cuda12`, `cuda13` or `metal`.
pub const BACKEND: &str = match option_env!("OXMLX_MLX_BACKEND") {
    Some(backend) => backend,
    None => "unknown",
};

/// Whether the library that was built against has matrix kernels for the neural accelerators of newer Apple GPUs: `present`,
/// `absent` or `unknown`.
pub const NAX_BUILT: &str = match option_env!("OXMLX_MLX_NAX") {
    Some(presence) => presence,
    None => "unknown",
};

/// The file of the MLX library that the loader found; `None` where it can't be told.
pub fn loaded_library() -> Option<PathBuf> {
    Some(runtime::library_path()).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// [`NAX_BUILT`], asked of the library that was loaded: reads its `mlx.metallib`.
pub fn nax_loaded() -> &'static str {
    match loaded_library().and_then(|library| Some(library.parent()?.join("mlx.metallib"))) {
        Some(metallib) if metallib.exists() => probe::nax_kernels(&metallib).name(),
        Some(_) => "absent",
        None => "unknown",
    }
}

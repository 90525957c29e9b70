//! Which MLX this build stands on, and which one it found when it ran.

use std::path::PathBuf;

use oxmlx_sys::build_info as sys;

/// The MLX release that oxmlx pins, such as `0.32.4`.
pub const PINNED_VERSION: &str = sys::PINNED_VERSION;

/// The backend that the library was chosen for when oxmlx was built: `cpu`, `cuda12`, `cuda13` or `metal`.
pub const BACKEND: &str = sys::BACKEND;

/// Whether the library that oxmlx was built against has matrix kernels for the neural accelerators of newer Apple GPUs:
/// `present`, `absent` or `unknown`.
pub const NAX_BUILT: &str = sys::NAX_BUILT;

/// The file of the MLX library that the loader found; `None` where it can't be told.
pub fn loaded_library() -> Option<PathBuf> {
    sys::loaded_library()
}

/// [`NAX_BUILT`], asked of the library that was loaded. Reads a big file on macOS.
pub fn nax_loaded() -> &'static str {
    sys::nax_loaded()
}

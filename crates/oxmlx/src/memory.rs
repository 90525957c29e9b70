//! How much memory MLX holds, in bytes, and how much it may hold.

use oxmlx_sys::generated::memory as raw;

use crate::Result;

/// The memory that live arrays take.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_active_memory` (`mlx/memory.h`).
pub fn active() -> Result<usize> {
    Ok(raw::get_active_memory()?)
}

/// The most memory that live arrays took since the start or [`reset_peak`].
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_peak_memory` (`mlx/memory.h`).
pub fn peak() -> Result<usize> {
    Ok(raw::get_peak_memory()?)
}

/// Starts [`peak`] anew.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::reset_peak_memory` (`mlx/memory.h`).
pub fn reset_peak() -> Result<()> {
    Ok(raw::reset_peak_memory()?)
}

/// The freed memory that MLX keeps for the next arrays.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_cache_memory` (`mlx/memory.h`).
pub fn cached() -> Result<usize> {
    Ok(raw::get_cache_memory()?)
}

/// Gives the memory that MLX keeps back to the system.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::clear_cache` (`mlx/memory.h`).
pub fn clear_cache() -> Result<()> {
    Ok(raw::clear_cache()?)
}

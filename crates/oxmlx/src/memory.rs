//! How much memory MLX holds, in bytes, and how much it may hold.

use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The memory that the buffers of these arrays take, each counted once.
///
/// ```
/// use oxmlx::{Array, memory};
/// let a = Array::zeros::<f32>(1000)?;
/// a.eval()?;
/// assert!(memory::of_arrays(&[a.clone(), a])? >= 4000);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_array_buffer_size` (`mlx/memory.h`).
pub fn of_arrays(arrays: &[crate::Array]) -> Result<usize> {
    Ok(raw::get_array_buffer_size(crate::Array::raw(arrays))?)
}

/// The memory that MLX tries to stay under.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_memory_limit` (`mlx/memory.h`).
pub fn limit() -> Result<usize> {
    Ok(raw::get_memory_limit()?)
}

/// Sets the memory that MLX tries to stay under, and returns what it was.
///
/// ```
/// use oxmlx::memory;
/// let before = memory::limit()?;
/// assert_eq!(memory::set_limit(before)?, before);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::set_memory_limit` (`mlx/memory.h`).
pub fn set_limit(bytes: usize) -> Result<usize> {
    Ok(raw::set_memory_limit(bytes)?)
}

/// Sets how much freed memory MLX keeps for the next arrays, and returns what it was. Zero keeps none.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::set_cache_limit` (`mlx/memory.h`).
pub fn set_cache_limit(bytes: usize) -> Result<usize> {
    Ok(raw::set_cache_limit(bytes)?)
}

/// Sets how much memory Metal keeps resident, and returns what it was. Other devices have no such memory: 0 there.
///
/// # Errors
/// What MLX reports for more than the system allows.
///
/// # Source
/// C++ `mlx::core::set_wired_limit` (`mlx/memory.h`).
pub fn set_wired_limit(bytes: usize) -> Result<usize> {
    Ok(raw::set_wired_limit(bytes)?)
}

/// What a stretch of work takes at most, above what was there before it.
///
/// Only one bracket can measure at a time, since MLX keeps one peak for the process: [`PeakMemory::start`] waits for the one before.
/// Arrays of other threads count too. Lazy work counts when it is evaluated, so evaluate inside.
///
/// ```
/// use oxmlx::{Array, memory::PeakMemory};
/// let bracket = PeakMemory::start()?;
/// Array::zeros::<f32>(100_000)?.eval()?;
/// let peak = bracket.stop()?;
/// assert!(peak.above_start >= 400_000, "{peak:?}");
/// # Ok::<(), oxmlx::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct PeakMemory {
    at_start: usize,
    _only: MutexGuard<'static, ()>,
}

/// What a [`PeakMemory`] bracket saw, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The memory of live arrays when the bracket began.
    pub at_start: usize,
    /// The most that live arrays took inside.
    pub peak: usize,
    /// How much of that came on top of the start.
    pub above_start: usize,
}

impl PeakMemory {
    /// Begins to measure.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn start() -> Result<Self> {
        static ONLY: Mutex<()> = Mutex::new(());
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        reset_peak()?;
        Ok(Self { at_start: active()?, _only: only })
    }

    /// Ends the measurement.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn stop(self) -> Result<Peak> {
        // MLX's peak starts at zero and grows with the next allocation: what was live all along is a lower bound.
        let peak = peak()?.max(self.at_start);
        Ok(Peak { at_start: self.at_start, peak, above_start: peak - self.at_start })
    }
}

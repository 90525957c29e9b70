//! Streams: queues of work on a device.
//!
//! By default all work of the process goes to one stream a device. A [`Stream`] of one's own lets work run beside it; inside
//! [`Stream::scope`] this thread's operations go to it. Any thread may evaluate what was built there.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use oxmlx_sys::runtime as sys;
use oxmlx_sys::types;

use crate::{Device, Result};

/// Streams that nobody uses now. MLX never frees one, and an OS thread with it, so they are used again.
static POOL: Mutex<Vec<(Device, i32)>> = Mutex::new(Vec::new());

/// A queue of work on a device. Dropping it gives it back for the next one that is opened.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    index: i32,
}

impl Stream {
    /// A stream of its own on a device.
    ///
    /// ```
    /// use oxmlx::{Array, Device, stream::Stream};
    /// let stream = Stream::new(Device::Cpu)?;
    /// let sum = stream.scope(|| Array::scalar(1i32)? + Array::scalar(2i32)?)?;
    /// assert_eq!(sum?.item::<i32>()?, 3);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) when there is no such device.
    ///
    /// # Source
    /// C++ `mlx::core::new_thread_unsafe_stream` (`mlx/stream.h`).
    pub fn new(device: Device) -> Result<Self> {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pool.iter().position(|&(d, _)| d == device) {
            let (device, index) = pool.swap_remove(at);
            return Ok(Self { device, index });
        }
        drop(pool);
        Ok(Self { device, index: sys::open_stream(device.raw())? })
    }

    /// The device that its work runs on.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Runs `f` with this thread's operations going to the stream. Scopes nest.
    ///
    /// # Errors
    /// Only what every entry into MLX can report; what `f` returns is passed on.
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        Ok(sys::with_stream(self.device.raw(), self.index, f)?)
    }

    /// Waits until the stream has done all it was given.
    ///
    /// # Errors
    /// Only what every entry into MLX can report. A kernel that failed is told to those who read what depends on it.
    ///
    /// # Source
    /// C++ `mlx::core::synchronize` (`mlx/stream.h`).
    pub fn synchronize(&self) -> Result<()> {
        Ok(sys::synchronize(self.device.raw(), self.index)?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        POOL.lock().unwrap_or_else(PoisonError::into_inner).push((self.device, self.index));
    }
}

impl fmt::Display for Stream {
    /// As MLX names it: `Stream(Device(cpu, 0), 3)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = types::Device { kind: self.device.raw(), index: 0 };
        match oxmlx_sys::generated::utils::format_stream(types::Stream { index: self.index, device }) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

/// Waits until the stream that this thread's operations go to has done all it was given: that of the innermost [`Stream::scope`], else
/// the default stream of the default device. Other threads go on meanwhile.
///
/// # Errors
/// Only what every entry into MLX can report. A kernel that failed is told to those who read what depends on it.
///
/// # Source
/// C++ `mlx::core::synchronize` (`mlx/stream.h`).
pub fn synchronize() -> Result<()> {
    Ok(sys::synchronize_current()?)
}

/// How many streams MLX holds in this process.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_streams` (`mlx/stream.h`).
pub fn count() -> Result<usize> {
    Ok(sys::stream_count()?)
}

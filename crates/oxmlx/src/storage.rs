//! Memory that is shared with the outside: read-only views of an array's storage, [DLPack](dlpack), arrays over memory that others
//! own, and the handles of MLX's C API.
//!
//! A [`StorageView`] says where the elements of an evaluated array lie and keeps them there. Making one **never evaluates and never
//! copies**, and it waits only when it is told to. While it lives the storage is neither reused nor written: whatever becomes of
//! the array, the bytes stay. Nobody may write through it. Synchronisation stays with the caller; `docs/storage-view.md` says how on each
//! device, and what is not promised.
//!
//! ```
//! use oxmlx::storage::{StorageExportError, StorageExportOptions};
//! use oxmlx::{Array, Device, Stream};
//! let in_host_memory = || -> Result<(), Box<dyn std::error::Error>> {
//!     let a = (Array::vector(&[1.0f32, 2.0, 3.0])? + Array::scalar(1.0f32)?)?;
//!     let options = StorageExportOptions::default();
//!     assert!(matches!(a.storage_view(&options), Err(StorageExportError::ArrayNotAvailable)));
//!     a.eval()?;
//!     let view = a.storage_view(&options)?;
//!     drop(a);
//!     assert_eq!(view.as_slice::<f32>()?, [2.0, 3.0, 4.0]);
//!     Ok(())
//! };
//! Stream::new(Device::Cpu)?.scope(in_host_memory)??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod adopt;
mod arena;
pub mod dlpack;
mod error;
mod mlx_c;
mod view;

pub use self::adopt::{Adoption, CopyReason};
pub use self::arena::Arena;
pub use self::error::StorageExportError;
pub use self::mlx_c::MlxArray;
pub use self::view::{StorageBuffer, StorageDevice, StorageView};
pub use oxmlx_sys::storage::Backend as StorageBackend;

use oxmlx_sys::storage as sys;

use crate::{Array, Result};

/// What is asked of a view. The default waits for nothing, wants row-major order without gaps, and takes any memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageExportOptions {
    wait_until_available: bool,
    require_row_contiguous: bool,
    backend: Option<StorageBackend>,
}

impl Default for StorageExportOptions {
    fn default() -> Self {
        Self { wait_until_available: false, require_row_contiguous: true, backend: None }
    }
}

impl StorageExportOptions {
    /// Whether to wait for an array whose computation was started. A lazy array is never started: it stays
    /// [`ArrayNotAvailable`](StorageExportError::ArrayNotAvailable).
    #[must_use]
    pub fn wait_until_available(mut self, wait: bool) -> Self {
        self.wait_until_available = wait;
        self
    }

    /// Whether to refuse what does not lie in row-major order without gaps. Without it every layout goes but one that runs backwards.
    #[must_use]
    pub fn require_row_contiguous(mut self, require: bool) -> Self {
        self.require_row_contiguous = require;
        self
    }

    /// Takes memory of one kind only: any other is an [`UnsupportedBackend`](StorageExportError::UnsupportedBackend).
    #[must_use]
    pub fn require_backend(mut self, backend: StorageBackend) -> Self {
        self.backend = Some(backend);
        self
    }
}

/// What the memory of the loaded MLX library is.
///
/// ```
/// use oxmlx::storage::{self, StorageBackend};
/// let expected = if oxmlx::Device::Gpu.count()? == 0 { StorageBackend::Host } else { storage::loaded_backend()? };
/// assert_eq!(storage::loaded_backend()?, expected);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
pub fn loaded_backend() -> Result<StorageBackend> {
    Ok(sys::loaded_backend()?)
}

impl Array {
    /// A view of the array's storage, without a copy.
    ///
    /// ```
    /// use oxmlx::{Array, storage::StorageExportOptions};
    /// let a = Array::matrix(&[[1i32, 2, 3], [4, 5, 6]])?;
    /// let view = a.storage_view(&StorageExportOptions::default())?;
    /// assert_eq!((view.shape(), view.strides(), view.storage_span_nbytes()), (&[2, 3][..], &[3, 1][..], 24));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StorageExportError`], one variant a cause.
    pub fn storage_view(&self, options: &StorageExportOptions) -> Result<StorageView, StorageExportError> {
        self.viewed(options, false)
    }

    /// A view whose storage is an `MTLBuffer`.
    ///
    /// # Errors
    /// [`StorageExportError::MetalNotAvailable`] where the loaded library has no Metal; else as [`storage_view`](Self::storage_view).
    pub fn metal_storage_view(&self, options: &StorageExportOptions) -> Result<StorageView, StorageExportError> {
        self.viewed(options, true)
    }

    fn viewed(&self, options: &StorageExportOptions, metal: bool) -> Result<StorageView, StorageExportError> {
        let wanted = sys::Wanted { row_contiguous: options.require_row_contiguous, backend: options.backend, metal };
        let started = || Ok::<_, crate::Error>(self.0.status()? == oxmlx_sys::array::Status::Evaluated);
        // The wait is outside the lock.
        if options.wait_until_available && started()? {
            oxmlx_sys::evaluation::wait(&self.0).map_err(crate::Error::from)?;
        }
        match sys::retain(&self.0, wanted).map_err(crate::Error::from)? {
            Ok(retained) => Ok(StorageView::new(retained)),
            Err(status) => Err(StorageExportError::from_status(status, self)),
        }
    }
}

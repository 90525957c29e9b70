//! Why there is no view: one variant a cause.

use std::fmt;

use oxmlx_sys::storage::Status;

use crate::{Array, Error, ErrorKind};

/// Why there is no view of an array's storage.
#[derive(Debug)]
#[non_exhaustive]
pub enum StorageExportError {
    /// The values are not there: the array is lazy, or its computation is not done and the options do not say to wait.
    ArrayNotAvailable,
    /// The array has elements and no memory that holds them.
    NoStorage,
    /// The memory is of another backend than the one the options ask for, or of one that oxmlx does not know.
    UnsupportedBackend,
    /// The layout is not row-contiguous where that is required, or a stride is negative.
    UnsupportedLayout {
        /// The array's shape.
        shape: Vec<i32>,
        /// Its strides, in elements.
        strides: Vec<i64>,
    },
    /// The elements do not lie within the storage, or are not aligned for their dtype.
    InvalidOffset,
    /// A Metal view was asked for, and the loaded library has no Metal.
    MetalNotAvailable,
    /// MLX could not be asked, or reported that the computation of the array failed.
    Failed(Error),
}

impl StorageExportError {
    #[cold]
    pub(super) fn from_status(status: Status, a: &Array) -> Self {
        match status {
            Status::ArrayNotAvailable => Self::ArrayNotAvailable,
            Status::NoStorage => Self::NoStorage,
            Status::UnsupportedLayout => Self::UnsupportedLayout {
                shape: a.shape().to_vec(),
                strides: a.0.strides().map(<[i64]>::to_vec).unwrap_or_default(),
            },
            Status::InvalidOffset => Self::InvalidOffset,
            Status::MetalNotAvailable => Self::MetalNotAvailable,
            Status::UnsupportedBackend | Status::Success => Self::UnsupportedBackend,
        }
    }
}

impl fmt::Display for StorageExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArrayNotAvailable => {
                f.write_str("the array is not available: evaluate it, and wait for it with `wait_until_available`")
            }
            Self::NoStorage => f.write_str("the array has no storage"),
            Self::UnsupportedBackend => f.write_str("the array's memory is not of the backend that was asked for"),
            Self::UnsupportedLayout { shape, strides } => write!(
                f,
                "no view of shape {shape:?} with strides {strides:?} as asked for: use `ops::contiguous`, or, unless a stride is \
                 negative, set `require_row_contiguous(false)`"
            ),
            Self::InvalidOffset => {
                f.write_str("the array's elements do not lie within its storage, aligned for their dtype")
            }
            Self::MetalNotAvailable => f.write_str("the loaded MLX library has no Metal"),
            Self::Failed(_) => f.write_str("the array could not be looked at"),
        }
    }
}

impl std::error::Error for StorageExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for StorageExportError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<StorageExportError> for Error {
    fn from(error: StorageExportError) -> Self {
        let kind = match &error {
            StorageExportError::ArrayNotAvailable | StorageExportError::NoStorage => ErrorKind::InvalidArgument,
            StorageExportError::UnsupportedLayout { .. } | StorageExportError::InvalidOffset => ErrorKind::Shape,
            StorageExportError::UnsupportedBackend | StorageExportError::MetalNotAvailable => ErrorKind::Unsupported,
            StorageExportError::Failed(_) => match error {
                StorageExportError::Failed(error) => return error,
                _ => ErrorKind::Backend,
            },
        };
        Self::new(kind, "storage_view", error.to_string())
    }
}

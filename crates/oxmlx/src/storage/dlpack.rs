//! [DLPack](https://dmlc.github.io/dlpack/latest/): tensors exchanged with NumPy, PyTorch, JAX, CuPy and others, without a copy.
//!
//! **Out**: [`StorageView::to_dlpack`] gives the versioned form with the read-only flag set. The legacy form has no such flag, so that a
//! consumer may write: [`StorageView::to_dlpack_legacy`] refuses unless the options say that this is accepted.
//! **In**: [`Array::from_dlpack`] takes a producer's tensor over. Its deleter is called exactly once, when the last array over the memory
//! is gone, on whichever thread let go.
//!
//! The array must be available, and nothing is synchronised: an available array needs nothing from its producer's side, and what
//! comes in must be ready to read on any stream (the `stream` argument of `__dlpack__` asks the producer for that).
//!
//! ```
//! use oxmlx::{Array, storage::StorageExportOptions};
//! let a = Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?;
//! let tensor = a.storage_view(&StorageExportOptions::default())?.to_dlpack(&Default::default())?;
//! assert!(tensor.is_read_only());
//! let (b, _) = Array::from_dlpack(tensor)?;
//! assert_eq!(b.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod export;
mod import;

pub use self::abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, device, flags, type_code,
};
pub use self::export::DlpackOptions;
pub use self::import::{LegacyTensor, Tensor};

#[cfg(doc)]
use crate::{Array, storage::StorageView};

use crate::Dtype;

/// The DLPack type of a dtype.
pub fn dtype_to_dlpack(dtype: Dtype) -> DLDataType {
    let code = match dtype {
        Dtype::Bool => type_code::BOOL,
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64 => type_code::UINT,
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => type_code::INT,
        Dtype::Float16 | Dtype::Float32 | Dtype::Float64 => type_code::FLOAT,
        Dtype::Bfloat16 => type_code::BFLOAT,
        Dtype::Complex64 => type_code::COMPLEX,
    };
    DLDataType { code, bits: (dtype.size() * 8) as u8, lanes: 1 }
}

/// The dtype of a DLPack type; `None` where MLX has none.
///
/// ```
/// use oxmlx::{Dtype, storage::dlpack::{dtype_from_dlpack, dtype_to_dlpack}};
/// assert_eq!(dtype_from_dlpack(dtype_to_dlpack(Dtype::Bfloat16)), Some(Dtype::Bfloat16));
/// ```
pub fn dtype_from_dlpack(dtype: DLDataType) -> Option<Dtype> {
    Dtype::ALL.into_iter().find(|&known| dtype_to_dlpack(known) == dtype)
}

//! GGUF files, versions 2 and 3: header, metadata and tensors, read from borrowed bytes.
//!
//! [`Gguf::parse`] checks everything that a damaged or hostile file could get wrong before anything is believed: counts and
//! lengths against the bytes that are left, names for duplicates, tensors for overlap and for lying outside the file. It
//! copies no tensor data and no text. [`Tensor::values`] hands out the values in a form that MLX can use: as they are, or as an
//! [`Affine`] triple converted without loss.
//!
//! ```
//! # fn main() -> Result<(), oxmlx_lm::Error> {
//! // "GGUF", version 3, no tensors, one key "a" that is the bool true.
//! let mut file = b"GGUF\x03\0\0\0".to_vec();
//! file.extend(0u64.to_le_bytes());
//! file.extend(1u64.to_le_bytes());
//! file.extend(b"\x01\0\0\0\0\0\0\0a\x07\0\0\0\x01");
//! let gguf = oxmlx_lm::gguf::Gguf::parse(&file)?;
//! assert_eq!(gguf.bool("a")?, Some(true));
//! # Ok(())
//! # }
//! ```
//!
//! # Source
//! The format: `docs/gguf.md` of ggml. Block layouts: `ggml-common.h`.

mod affine;
mod cursor;
mod file;
mod ggml;
mod value;

pub use affine::Affine;
pub use file::{Gguf, Tensor, Values};
pub use ggml::GgmlType;
pub use value::{Array, Value};

pub(crate) use affine::{
    GROUP, biases as affine_biases, scales as affine_scales, unreadable, weights as affine_weights,
};

//! One tensor's bytes with their meaning, owning whatever keeps them alive.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::Dtype;
use crate::Mapped;

/// A named tensor. Cheap to clone where its data are mapped.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) data: TensorData,
}

/// Row-major, little-endian bytes; derefs to `[u8]`.
#[derive(Clone)]
#[non_exhaustive]
pub enum TensorData {
    /// Part of a mapped file, whose alignment is whatever the file gave it.
    Mapped {
        /// The file; clone this to keep the bytes alive.
        file: Arc<Mapped>,
        /// Where in the file they are.
        range: Range<usize>,
    },
    /// Converted 32-bit words.
    Words(Vec<u32>),
    /// Converted 16-bit numbers.
    Halves(Vec<u16>),
}

const _: () = assert!(cfg!(target_endian = "little"), "checkpoints are little-endian and used without conversion");

impl Tensor {
    /// The Hugging Face name, `model.layers.0.self_attn.q_proj.weight` for example.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The size of each dimension, the slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements' bytes.
    pub fn data(&self) -> &TensorData {
        &self.data
    }

    /// The elements' bytes, given away.
    pub fn into_data(self) -> TensorData {
        self.data
    }
}

impl Deref for TensorData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped { file, range } => &file[range.clone()],
            Self::Words(v) => bytemuck::cast_slice(v),
            Self::Halves(v) => bytemuck::cast_slice(v),
        }
    }
}

impl std::fmt::Debug for TensorData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            Self::Mapped { .. } => "mapped",
            Self::Words(_) | Self::Halves(_) => "converted",
        };
        write!(f, "{} bytes, {kind}", self.len())
    }
}

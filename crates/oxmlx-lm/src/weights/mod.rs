//! What a checkpoint holds: tensors by name, from SafeTensors folders and GGUF files alike.
//!
//! [`Checkpoint`] lists tensors by their Hugging Face names and hands out their bytes: as they stand in the mapped file where
//! the layout is MLX's already, converted where a GGUF block type has to become an affine triple. Nothing is read before it is
//! asked for, and nothing that a file holds is dropped in silence. [`Checkpoint::linear`] reads one layer and finds its
//! quantization from the tensors' own shapes.

mod checkpoint;
mod dtype;
mod folder;
mod layer;
mod names;
mod safetensors;
mod tensor;

pub use checkpoint::Checkpoint;
pub use dtype::Dtype;
pub use layer::{Linear, Matrix};
pub use tensor::{Tensor, TensorData};

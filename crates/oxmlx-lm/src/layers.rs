//! The parts that models are built of, over oxmlx arrays.
//!
//! A layer holds its weights and has a `forward`; it knows nothing of files. [`Loader`] makes layers from a checkpoint.

mod activation;
mod embedding;
mod experts;
mod linear;
mod loader;
mod norm;
mod rope;

pub use activation::gelu_tanh;
pub use embedding::Embedding;
pub use experts::Experts;
pub use linear::{Linear, Weight};
pub use loader::Loader;
pub use norm::RmsNorm;
pub use rope::Rope;

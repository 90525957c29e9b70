//! CPU kernels for oxmlx in pure Rust: no MLX, no FFI.

mod error;

pub mod pool;

pub use error::ShapeError;
pub use pool::Pool;

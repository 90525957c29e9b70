//! CPU kernels for oxmlx in pure Rust: no MLX, no FFI.

pub mod attention;
mod dtype;
mod error;
pub mod fused;
pub mod gemm;
mod level;
mod math;
mod matrix;
pub mod ops;
pub mod pool;
pub mod quant;
mod raw;
pub mod reference;
mod scratch;
mod simd;

pub use dtype::{Floats, FloatsMut};
pub use error::ShapeError;
pub use level::Level;
pub use matrix::{MatMut, MatRef, View4};
pub use pool::Pool;

//! CPU kernels for oxmlx in pure Rust: no MLX, no FFI.
//!
//! Kernels work on slices and strides ([`MatRef`], [`MatMut`], [`View4`]), read and write f32, f16 and bf16 in any mix
//! ([`Floats`], [`FloatsMut`]), and add in f32. Each takes a [`Level`], the instructions that it may use, and runs on the
//! process-wide [`Pool`]. Sizes are checked first: a kernel that returns a [`ShapeError`] has written nothing.
//!
//! * [`quant`]: products with quantized matrices, for one row (as fast as memory) and for many
//! * [`gemm`]: dense products
//! * [`attention`]: decoding and prefill without the score matrix
//! * [`ops`]: norms, softmax, argmax, silu, rope
//! * [`fused`]: several of these in one fork-join, up to a whole decoder layer
//! * [`reference`](mod@reference): what each of them means, in f64
//!
//! Each kernel is written once over a small vector interface and compiled for AVX-512, AVX2, NEON and no vectors at all.
//!
//! ```
//! use oxmlx_kernels::gemm::{Factors, gemm};
//! use oxmlx_kernels::{Floats, FloatsMut, Level, MatMut, MatRef};
//!
//! # fn main() -> Result<(), oxmlx_kernels::ShapeError> {
//! let (x, w) = ([1.0f32, 2.0], [1.0f32, 0.0, 3.0, 1.0, 1.0, 1.0]);
//! let mut y = [0.0f32; 3];
//! let x = MatRef::new(Floats::F32(&x), 1, 2)?;
//! let w = MatRef::new(Floats::F32(&w), 3, 2)?;
//! gemm(Level::best(), x, w.t(), MatMut::new(FloatsMut::F32(&mut y), 1, 3)?, Factors::default())?;
//! assert_eq!(y, [1.0, 5.0, 3.0]);
//! # Ok(())
//! # }
//! ```

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

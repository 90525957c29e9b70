//! Apple's [MLX](https://github.com/ml-explore/mlx) array library from safe Rust.
//!
//! MLX is lazy: an operation builds a node of a graph, and values are computed when they are asked for. oxmlx keeps that and adds
//! what Rust users expect: every operation is a `Result`, arrays are `Send + Sync`, and nothing that safe code does can abort the
//! process. One program runs on the CPU and on CUDA (Linux) and on Metal (Apple silicon); the backend is what the loaded library has.
//!
//! ```
//! use oxmlx::{Array, ops};
//!
//! let x = Array::from_slice(&[3.0f32, 4.0], 2)?;
//! let norm = ops::sqrt(&ops::sum(&(&x * &x)?)?)?;
//! assert_eq!(norm.item::<f32>()?, 5.0);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! Guides: [for users of `mlx.core`](doc::mlx_core_users), [lazy evaluation](doc::lazy_evaluation), [transforms](doc::transforms).

pub mod array;
pub mod blas;
pub mod build_info;
pub mod claim;
mod cpu;
pub mod distributed;
pub mod doc;
pub mod dtype;
pub mod einsum;
pub mod error;
pub mod fast;
pub mod fft;
pub mod fused;
pub mod index;
pub mod io;
pub mod kernel;
pub mod linalg;
pub mod memory;
pub mod ops;
pub mod probe;
pub mod quantize;
pub mod random;
pub mod runtime;
pub mod shape;
pub mod storage;
pub mod stream;
pub mod transforms;

pub use array::Array;
pub use dtype::{Dtype, Element};
pub use error::{Error, ErrorKind, Result};
pub use runtime::{Device, async_eval, eval};
pub use shape::IntoShape;
pub use stream::Stream;

pub use half::{bf16, f16};
pub use num_complex::Complex32;

//! Your own kernels as nodes of the graph: in Rust for the CPU, in Metal and in CUDA.
//!
//! A [`Kernel`] is a function with a name, a rule for its outputs' shapes, and a body for each device that it runs on. The device of the
//! current stream picks the body when a node is built; a device without one is an `Err` that names both. Nothing is evaluated to build a node.
//!
//! * A body in Rust runs on MLX's own stream thread. It sees memory, not arrays: inside it MLX can't be entered (that is an `Err`), and
//!   an error or a panic comes out where a result that depends on it is asked for, each time, and nowhere else.
//! * A [`Source`] in Metal or CUDA is the inside of a function, whose signature MLX writes from the names and dtypes of inputs and outputs.
//!   MLX compiles it when a node is first evaluated; [`Kernel::warm_up`] does so ahead.
//!
//! Transforms use [`vjp`](Builder::vjp) and [`vmap`](Builder::vmap), or [`fallback`](Builder::fallback), the same function in MLX operations.
//! The guide is `docs/kernels.md`; [`stock`] has kernels in all three languages.
//!
//! ```
//! use oxmlx::kernel::Kernel;
//! use oxmlx::{Array, Dtype};
//!
//! let double = Kernel::builder("double")
//!     .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
//!     .cpu(|inputs, outputs| {
//!         let x = inputs[0].as_slice::<f32>()?;
//!         for (y, x) in outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x.iter()) {
//!             *y = 2.0 * x;
//!         }
//!         Ok(())
//!     })
//!     .build()?;
//! let x = Array::from_slice(&[1.0f32, 2.0], 2)?;
//! let y = oxmlx::Device::Cpu.scope(|| double.apply_one(&[x]))??;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), oxmlx::Error>(())
//! ```

mod apply;
mod builder;
mod constant;
mod declared;
mod memory;
mod parallel;
mod source;
pub mod stock;

pub use self::apply::Kernel;
pub use self::builder::Builder;
pub use self::constant::Constant;
pub use self::declared::{Accepts, Launch, OutputDtype, TemplateValue};
pub use self::memory::{Input, Output};
pub use self::parallel::{for_each_chunk, parallel};
pub use self::source::{GpuLanguage, KernelScalar, MetalMath, Source};

/// Any error that a body, rule or fallback returns.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

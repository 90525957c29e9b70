//! The checked C++ bridge to MLX that oxmlx stands on.
//!
//! This crate finds `libmlx`, compiles the shim in `cpp/` and holds the [`cxx`] bridges. It carries mechanism and no policy:
//! the handle ([`Array`]), the process-wide lock ([`lock`]), the one call helper ([`call()`](call::call)), the streams
//! ([`runtime`]), evaluation ([`evaluation`]), and a generated raw wrapper for every public function of MLX
//! ([`generated`]).
//!
//! **It trusts its caller.** A wrapper here passes what it is given to MLX, which has undefined behaviour for some arguments
//! (indices out of range, groups of zero). The crate `oxmlx` checks those; use it instead.
//!
//! What holds at this level already: no C++ exception and no Rust panic crosses the boundary, an exception keeps its kind
//! ([`ExceptionKind`]), and every entry into MLX, drops included, holds the lock.

pub mod array;
#[doc(hidden)]
pub mod bench;
pub mod build_info;
pub mod call;
pub mod closure;
pub mod compiled;
pub mod evaluation;
mod exception;
pub mod export;
pub mod export_steps;
pub mod generated;
pub mod gpu_kernel;
pub mod kernel;
pub mod layout;
pub mod lock;
pub mod owner;
pub mod runtime;
mod stack;
pub mod storage;
pub mod trace;
pub mod transforms;
pub mod types;

pub use array::Array;
pub use exception::{Exception, ExceptionKind, Result};

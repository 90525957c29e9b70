//! Raw wrappers of MLX's functions, written by `cargo xtask codegen`: one module a header, one function an overload.
//!
//! Each converts its arguments, enters MLX through [`call`](crate::call::call) on the thread's current stream, and returns MLX's
//! exception as an error. None checks what MLX leaves undefined: see the crate's own page.
#![allow(clippy::missing_errors_doc, reason = "every wrapper fails with what MLX throws")]
#![allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "the arguments are MLX's")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx expands a bridge function to several")]

pub mod compile;
pub mod device;
pub mod distributed;
pub mod distributed_ops;
pub mod dtype;
pub mod einsum;
pub mod fast;
pub mod fft;
pub mod io;
pub mod linalg;
pub mod memory;
pub mod ops;
pub mod random;
pub mod stream;
pub mod utils;
pub mod version;

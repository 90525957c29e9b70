//! Loops in plain C++ that benchmarks compare the bridge with.

use crate::call::call;
use crate::{Array, Result};

#[cxx::bridge(namespace = "oxmlx::bench")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    unsafe extern "C++" {
        include!("bench.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        fn add_nodes(a: &Array, b: &Array, count: u64) -> Result<u64>;
    }
}

/// Builds and drops `count` nodes `a + b` in a loop of C++, and returns the nanoseconds that all of them took.
///
/// # Errors
/// What MLX throws when the shapes do not broadcast.
pub fn add_nodes(a: &Array, b: &Array, count: u64) -> Result<u64> {
    call("add", || ffi::add_nodes(a, b, count))
}

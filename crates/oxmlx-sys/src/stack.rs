//! Room for MLX's recursive walks.
//!
//! Differentiation, compilation and export walk a graph by recursion, one frame a node: 50,000 nodes overflow a thread of 2 MiB. They run
//! on a stack that holds [`DEPTH`] nodes; a deeper graph is an error before the walk begins (`cpp/transforms.cpp`).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::{Exception, ExceptionKind, Result};

/// The deepest graph that a transform takes.
pub const DEPTH: usize = 500_000;

/// More than MLX 0.32.4 needs for a node of the depth, measured for `grad` and `compile`.
const A_NODE: usize = 1024;

const SIZE: usize = DEPTH * A_NODE;

/// Runs `f` with room for deep graphs. Memory that is not reached is not used.
///
/// # Errors
/// `OutOfMemory` when there is no room for the stack; those of `f`.
pub(crate) fn deep<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    // The crate panics when the system gives it no memory, before it calls anything.
    let mut f = Some(f);
    let outcome = catch_unwind(AssertUnwindSafe(|| stacker::maybe_grow(SIZE / 2, SIZE, || f.take().map(|f| f()))));
    match (outcome, f) {
        (Ok(Some(outcome)), _) => outcome,
        (Err(payload), None) => resume_unwind(payload),
        _ => Err(Exception::new(
            ExceptionKind::OutOfMemory,
            "stack",
            format!("there is no room for a stack of {SIZE} bytes"),
        )),
    }
}

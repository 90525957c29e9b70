//! Room for MLX's recursive walks.
//!
//! Differentiation, compilation and export walk a graph by recursion, one frame a node: 50,000 nodes overflow a thread of 2 MiB. They run
//! on a stack that holds [`DEPTH`] nodes; a deeper graph is an error before the walk begins (`cpp/transforms.cpp`).

/// The deepest graph that a transform takes.
pub const DEPTH: usize = 500_000;

/// More than MLX 0.32.4 needs for a node of the depth, measured for `grad` and `compile`.
const A_NODE: usize = 1024;

const SIZE: usize = DEPTH * A_NODE;

/// Runs `f` with room for deep graphs. Memory that is not reached is not used.
pub(crate) fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(SIZE / 2, SIZE, f)
}

//! CPU kernels for oxmlx in pure Rust: no MLX, no FFI.

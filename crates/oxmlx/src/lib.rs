//! Apple's MLX array library from safe Rust, on Linux CPU, NVIDIA GPUs and Apple silicon.

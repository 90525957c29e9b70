//! The checked C++ bridge to MLX that oxmlx stands on.

// A node of MLX's graph whose body is Rust.
#pragma once

#include "array_handle.h"
#include "evaluation.h"

#include <cstdint>

namespace oxmlx::kernel {

struct Node;

// Builds one node: its outputs are lazy, and its body runs on the current CPU stream's thread when they are evaluated.
// Each shape comes as its number of dimensions, then the dimensions.
rust::Vec<mlx::core::array>
apply(rust::Box<Node> node, rust::Slice<const mlx::core::array> inputs, rust::Slice<const std::int32_t> shapes);

// Facts of an input or output while a body runs, on MLX's thread and without the lock: constant by then.
const std::uint8_t* raw_data(const mlx::core::array& a) noexcept;
rust::Slice<const std::int64_t> raw_strides(const mlx::core::array& a) noexcept;
bool raw_row_contiguous(const mlx::core::array& a) noexcept;

} // namespace oxmlx::kernel

// A node of MLX's graph whose body is Rust.
#pragma once

#include "array_handle.h"
#include "evaluation.h"
#include "gpu_kernel.h"

#include <cstdint>
#include <memory>

namespace oxmlx::kernel {

struct Node;
struct Mapped;

// Builds one node: its outputs are lazy, and its body runs on the current CPU stream's thread when they are evaluated.
// Each shape comes as its number of dimensions, then the dimensions.
rust::Vec<mlx::core::array>
apply(rust::Box<Node> node, rust::Slice<const mlx::core::array> inputs, rust::Slice<const std::int32_t> shapes);

// The same on the current GPU stream. A plain node is one of MLX's own, without the rules for transforms: what an export can hold.
rust::Vec<mlx::core::array> apply_gpu(
    rust::Box<Node> node,
    const std::shared_ptr<gpu_kernel::GpuKernel>& kernel,
    rust::Slice<const mlx::core::array> inputs,
    rust::Slice<const std::int32_t> shapes,
    bool plain);

// Facts of an input or output while a body runs, on MLX's thread and without the lock: constant by then.
const std::uint8_t* raw_data(const mlx::core::array& a) noexcept;
rust::Slice<const std::int64_t> raw_strides(const mlx::core::array& a) noexcept;
bool raw_row_contiguous(const mlx::core::array& a) noexcept;

} // namespace oxmlx::kernel

// Loops in plain C++ that benchmarks compare the bridge with.
#pragma once

#include "array_handle.h"

#include <cstdint>

namespace oxmlx::bench {

// Builds and drops `count` nodes of a + b as a C++ program does, and returns the nanoseconds that all of them took.
std::uint64_t add_nodes(const mlx::core::array& a, const mlx::core::array& b, std::uint64_t count);

} // namespace oxmlx::bench

#include "bench.h"

#include "mlx/ops.h"

#include <chrono>

namespace oxmlx::bench {

std::uint64_t add_nodes(const mlx::core::array& a, const mlx::core::array& b, std::uint64_t count) {
  auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    auto node = mlx::core::add(a, b);
  }
  auto took = std::chrono::steady_clock::now() - start;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
}

} // namespace oxmlx::bench

// Members of mlx::core::distributed::Group as free functions.
#pragma once

#include "trycatch.h"

#include "mlx/distributed/distributed.h"

#include <cstdint>
#include <memory>

namespace oxmlx::group {

using mlx::core::distributed::Group;

inline std::int32_t rank(const Group& group) {
  return group.rank();
}

inline std::int32_t size(const Group& group) {
  return group.size();
}

inline std::unique_ptr<Group> split(const Group& group, std::int32_t color, std::int32_t key) {
  return std::make_unique<Group>(group.split(color, key));
}

} // namespace oxmlx::group

// The handle that crosses the bridge by value.
//
// mlx::core::array holds one std::shared_ptr and nothing else. A shared_ptr of libstdc++ and of libc++ is two plain pointers with no
// pointer into itself, so that moving its bytes and forgetting the source is the same as its move constructor followed by the
// source's destructor. That is the promise IsRelocatable makes; the size and alignment that `src/array.rs` mirrors are asserted here.
#pragma once

#include "rust/cxx.h"
#include "trycatch.h"

#include "mlx/array.h"

#include <cstdint>

template <>
struct rust::IsRelocatable<mlx::core::array> : std::true_type {};

static_assert(sizeof(mlx::core::array) == 16, "mlx::core::array is no longer one shared_ptr: see src/array.rs");
static_assert(alignof(mlx::core::array) == 8, "mlx::core::array is no longer one shared_ptr: see src/array.rs");

namespace oxmlx {

// The dtype at a position of Dtype::Val. Throws for a position that does not exist.
mlx::core::Dtype dtype_of(std::uint8_t code);

} // namespace oxmlx

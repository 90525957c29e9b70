// The handle's own functions: life, facts, construction from bytes and reading back.
#pragma once

#include "array_handle.h"

#include <cstdint>

namespace oxmlx::array {

using Handle = mlx::core::array;

Handle clone(const Handle& a) noexcept;
void drop_in_place(Handle* a) noexcept;

std::size_t size(const Handle& a) noexcept;
std::size_t itemsize(const Handle& a) noexcept;
rust::Slice<const std::int32_t> shape(const Handle& a) noexcept;
std::uint8_t dtype(const Handle& a) noexcept;
std::size_t id(const Handle& a) noexcept;

// Copies `data`, which holds exactly the elements of `shape` in row-major order.
Handle from_bytes(rust::Slice<const std::uint8_t> data, rust::Slice<const std::int32_t> shape, std::uint8_t dtype);

// 0 unscheduled, 1 evaluated, 2 available.
std::uint8_t status(const Handle& a);
bool is_tracer(const Handle& a);
bool row_contiguous(const Handle& a);
rust::Slice<const std::int64_t> strides(const Handle& a);
// The first element of an available array; null when it has no elements.
const std::uint8_t* data(const Handle& a);
// Prints as MLX does; evaluates.
rust::String to_text(const Handle& a);

} // namespace oxmlx::array

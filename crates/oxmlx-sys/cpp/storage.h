// Views of storage, memory that others own, and the handles of MLX's C API. The rules of a view are in include/oxmlx/storage.h.
#pragma once

#include "array_handle.h"

#include "oxmlx/storage.h"

#include <cstdint>

namespace oxmlx::storage {

using Handle = mlx::core::array;

struct Owner;
struct Facts;

// Where an array's elements lie, or the status that says why that can't be told. Never waits.
Facts facts(const Handle& a, bool require_row_contiguous, std::uint8_t backend);
// The same for a Metal view.
Facts metal_facts(const Handle& a, bool require_row_contiguous);
// 0 host, 1 CUDA, 2 Metal.
std::uint8_t loaded_backend();

// Another array over the storage of an available array, outside any graph: keeps the storage from being reused or written.
Handle retain(const Handle& a);
// Counts a view of the storage with this identity, or one fewer. MLX's own reads by the host would move such storage on CUDA.
void pin(std::size_t storage, bool more);
// Whether the host may read the array where it lies.
bool host_readable(const Handle& a);
// The array's elements in memory of their own, made on the default device. Lazy.
Handle copied(const Handle& a);

// A scalar that stands for `nbytes` of the host's memory from `data` on, and drops `owner` once no array lies over it; none where the
// library wants memory of its own. `whole_pages`: the rest of the pages that it starts and ends in may be read too.
rust::Vec<Handle> adopt_host(std::size_t data, std::size_t nbytes, bool whole_pages, rust::Box<Owner> owner);
// The same for memory of a CUDA device, or for the MTLBuffer at `data` (whose size Metal knows).
Handle
adopt_device(std::size_t data, std::size_t nbytes, std::int32_t ordinal, bool host_visible, rust::Box<Owner> owner);
// An array of `shape` and `strides` over adopted memory, from `offset` bytes on. Trusts its caller that all of it lies inside.
Handle over(
    const Handle& memory,
    std::size_t offset,
    rust::Slice<const std::int32_t> shape,
    rust::Slice<const std::int64_t> strides,
    std::uint8_t dtype);

// An mlx_array's ctx: a heap array that the C API owns from here on, or owned until here.
std::size_t to_c(const Handle& a);
Handle from_c(std::size_t ctx, bool take);

// For the tests of the statuses: an array over the storage of `a` whose offset is wrong by `bytes`; one that has no storage at all.
Handle shifted_for_test(const Handle& a, std::int64_t bytes);
Handle without_storage_for_test(const Handle& a);

} // namespace oxmlx::storage

#include "array.h"

#include "convert.h"
#include "evaluation.h"
#include "storage.h"

#include "mlx/utils.h"

#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>

namespace oxmlx {

mx::Dtype dtype_of(std::uint8_t code) {
  if (code >= dtypes.size()) {
    throw std::invalid_argument("[dtype] unknown dtype code " + std::to_string(code));
  }
  return dtypes[code];
}

} // namespace oxmlx

namespace oxmlx::array {

Handle clone(const Handle& a) noexcept {
  return a;
}

void drop_in_place(Handle* a) noexcept {
  std::destroy_at(a);
}

std::size_t size(const Handle& a) noexcept {
  return a.size();
}

std::size_t itemsize(const Handle& a) noexcept {
  return a.itemsize();
}

rust::Slice<const std::int32_t> shape(const Handle& a) noexcept {
  const auto& s = a.shape();
  return {s.data(), s.size()};
}

std::uint8_t dtype(const Handle& a) noexcept {
  return static_cast<std::uint8_t>(a.dtype().val());
}

std::size_t id(const Handle& a) noexcept {
  return a.id();
}

Handle from_bytes(rust::Slice<const std::uint8_t> data, rust::Slice<const std::int32_t> shape, std::uint8_t dtype) {
  Handle made(mx::Shape(shape.begin(), shape.end()), dtype_of(dtype), nullptr, {});
  if (made.nbytes() != data.size()) {
    throw std::invalid_argument(
        "[from_bytes] " + std::to_string(data.size()) + " bytes given, " + std::to_string(made.nbytes()) +
        " needed by the shape and dtype");
  }
  auto buffer = mx::allocator::malloc(data.size());
  if (buffer.buffer().ptr() == nullptr) {
    throw std::bad_alloc();
  }
  made.set_data(std::move(buffer));
  if (!data.empty()) {
    std::memcpy(made.data<std::uint8_t>(), data.data(), data.size());
  }
  made.set_status(Handle::Status::available);
  return made;
}

std::uint8_t status(const Handle& a) {
  switch (a.status()) {
    case Handle::Status::unscheduled:
      return 0;
    case Handle::Status::evaluated:
      return a.is_available() ? 2 : 1;
    case Handle::Status::available:
      return 2;
  }
  return 0;
}

bool is_tracer(const Handle& a) {
  return a.is_tracer();
}

bool row_contiguous(const Handle& a) {
  return a.flags().row_contiguous;
}

rust::Slice<const std::int64_t> strides(const Handle& a) {
  const auto& s = a.strides();
  return {s.data(), s.size()};
}

const std::uint8_t* data(const Handle& a) {
  if (evaluation::guilt_of(a) != nullptr) {
    throw std::invalid_argument("[data] the array's computation failed: evaluate it to see how");
  }
  // Asked, not read: inside a transform an evaluated array keeps its event until somebody asks.
  if (!a.is_available()) {
    throw std::invalid_argument("[data] the array is not available: evaluate it first");
  }
  if (a.size() == 0 || a.data_shared_ptr() == nullptr) {
    return nullptr;
  }
  if (!storage::host_readable(a)) {
    throw Refused(
        "the host can't read this memory of a GPU without moving it, and others hold it: copy the array first");
  }
  return a.data<std::uint8_t>();
}

rust::String to_text(const Handle& a) {
  // As Python MLX sets it when it is imported: True, not true.
  mx::get_global_formatter().capitalize_bool = true;
  std::ostringstream out;
  out << a;
  return out.str();
}

} // namespace oxmlx::array

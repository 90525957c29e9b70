// Read-only views of an evaluated array's storage, for C++ code that links libmlx. Header-only; needs C++20.
//
// A view tells where an array's bytes lie and keeps them there: storage identity, byte offset and span, device, dtype, shape, strides,
// contiguity, and a share of the storage that lasts as long as the view. Making one never evaluates, never copies, and waits only
// when it is told to. Nobody may write through a view. Synchronisation stays with the caller: docs/storage-view.md says how.
//
// MLX is not safe under concurrent use: call these functions, and drop views, where no other thread is in MLX, or under the lock
// that the program has around it. (The Rust crate oxmlx does that by itself.)
#pragma once

#include "mlx/array.h"
#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/device.h"
#include "mlx/event.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace MTL {
class Buffer; // opaque here: include metal-cpp to use one
} // namespace MTL

namespace oxmlx {

enum class StorageExportStatus : std::uint8_t {
  success,
  // A Metal view was asked for, and the loaded library has no Metal.
  metal_not_available,
  // Nothing was computed yet, or the computation is not done. A lazy array stays lazy, whatever the options.
  array_not_available,
  // The array has elements and no memory that holds them.
  no_storage,
  // The memory is not of the kind that the options ask for, or of a kind that this header does not know.
  unsupported_backend,
  // Not row-contiguous where that is required; or strides that run backwards, which no view describes.
  unsupported_layout,
  // The elements do not lie within the storage, or not at a multiple of their alignment.
  invalid_offset,
};

inline const char* to_string(StorageExportStatus status) {
  switch (status) {
    case StorageExportStatus::success:
      return "success";
    case StorageExportStatus::metal_not_available:
      return "Metal is not available in the loaded MLX library";
    case StorageExportStatus::array_not_available:
      return "the array is not available: evaluate it and wait for it first";
    case StorageExportStatus::no_storage:
      return "the array has no storage";
    case StorageExportStatus::unsupported_backend:
      return "the array's memory is not of the backend that was asked for";
    case StorageExportStatus::unsupported_layout:
      return "the array's layout is not one that was asked for";
    case StorageExportStatus::invalid_offset:
      return "the array's elements do not lie within its storage";
  }
  return "unknown";
}

// What the memory of the loaded library is.
enum class StorageBackend : std::uint8_t { host, cuda, metal };

struct StorageExportOptions {
  // Wait for an array whose computation was started. Never starts one.
  bool wait_until_available = false;
  bool require_row_contiguous = true;
  // Only memory of this kind; any when not set.
  std::optional<StorageBackend> backend = std::nullopt;
};

class StorageExportError : public std::runtime_error {
 public:
  explicit StorageExportError(StorageExportStatus status) : std::runtime_error(to_string(status)), status_(status) {}

  StorageExportStatus status() const noexcept {
    return status_;
  }

 private:
  StorageExportStatus status_;
};

namespace detail {

namespace mx = mlx::core;

// What a Buffer of the CUDA library points to (mlx/backend/cuda/allocator.h, which can't be included without CUDA's own headers).
struct CudaBuffer {
  void* data;
  std::size_t size;
  int device; // -1: memory that host and devices share
};

// Memory that others own and an array was put over.
struct Adopted {
  char* base;
  std::size_t nbytes;
  int ordinal; // the CUDA device; 0 elsewhere
  bool host_visible;
};

// What is known of adopted memory, by its Buffer's pointer: MLX's own size of such a buffer means nothing.
class AdoptedMemory {
 public:
  static AdoptedMemory& instance() {
    static auto* memory = new AdoptedMemory(); // never destroyed: arrays may outlive static objects
    return *memory;
  }

  void add(const void* buffer, Adopted adopted) {
    std::lock_guard lock(mutex_);
    known_.insert_or_assign(buffer, adopted);
  }

  void remove(const void* buffer) {
    std::lock_guard lock(mutex_);
    known_.erase(buffer);
  }

  std::optional<Adopted> find(const void* buffer) const {
    std::lock_guard lock(mutex_);
    auto at = known_.find(buffer);
    return at == known_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Adopted> known_;
};

inline StorageBackend loaded_backend() {
  static const auto backend = mx::metal::is_available() ? StorageBackend::metal
                              : mx::cu::is_available()  ? StorageBackend::cuda
                                                        : StorageBackend::host;
  return backend;
}

inline std::size_t alignment_of(mx::Dtype dtype) {
  return dtype == mx::complex64 ? 4 : mx::size_of(dtype);
}

// Whether the values are there. `wait` waits for those that are on their way, in a scratch array: two threads that wait in one array
// would free its event twice.
inline bool is_available(const mx::array& a, bool wait) {
  if (a.is_available()) {
    return true;
  }
  if (!wait || a.status() == mx::array::Status::unscheduled) {
    return false;
  }
  mx::array scratch({}, mx::bool_);
  scratch.attach_event(a.event());
  scratch.set_status(mx::array::Status::evaluated);
  scratch.wait();
  return a.is_available();
}

} // namespace detail

// A share of an array's storage, and where in it the elements lie. Cheap to copy. Read-only.
class StorageView {
 public:
  // Equal for views of one storage, and never reused while a view of it lives.
  const void* storage_id() const noexcept {
    return owner_.get();
  }

  StorageBackend backend() const noexcept {
    return backend_;
  }

  mlx::core::Device device() const {
    return backend_ == StorageBackend::host ? mlx::core::Device(mlx::core::Device::cpu)
                                            : mlx::core::Device(mlx::core::Device::gpu, ordinal_);
  }

  // Where the storage starts: in the host's or the CUDA device's memory; the MTL::Buffer on Metal. Null only for an empty array.
  const void* buffer() const noexcept {
    return base_;
  }

  // The first element; null on Metal, where there is only the buffer and the offset, and for an array without elements.
  const void* data() const noexcept {
    return backend_ == StorageBackend::metal || base_ == nullptr ? nullptr
                                                                 : static_cast<const char*>(base_) + byte_offset_;
  }

  // The first element as the host reads it; null where it can't.
  const void* host_data() const noexcept {
    return host_ == nullptr ? nullptr : static_cast<const char*>(host_) + byte_offset_;
  }

  // Whether CUDA memory is shared by host and devices.
  bool managed() const noexcept {
    return managed_;
  }

  std::size_t byte_offset() const noexcept {
    return byte_offset_;
  }

  // The bytes of all elements, laid out without gaps.
  std::size_t logical_nbytes() const noexcept {
    return logical_nbytes_;
  }

  // The bytes from the first element to the end of the last one in memory: less than `logical_nbytes` for a broadcast.
  std::size_t storage_span_nbytes() const noexcept {
    return span_nbytes_;
  }

  mlx::core::Dtype dtype() const noexcept {
    return dtype_;
  }

  const mlx::core::Shape& shape() const noexcept {
    return shape_;
  }

  // In elements.
  const mlx::core::Strides& strides() const noexcept {
    return strides_;
  }

  bool contiguous() const noexcept {
    return flags_.contiguous;
  }

  bool row_contiguous() const noexcept {
    return flags_.row_contiguous;
  }

  bool col_contiguous() const noexcept {
    return flags_.col_contiguous;
  }

 private:
  explicit StorageView(const mlx::core::array& a)
      : owner_(a.data_shared_ptr()),
        dtype_(a.dtype()),
        shape_(a.shape()),
        strides_(a.strides()),
        flags_(a.flags()),
        logical_nbytes_(a.nbytes()) {}

  friend std::pair<StorageExportStatus, std::optional<StorageView>> try_export_storage(
      const mlx::core::array&,
      const StorageExportOptions&);

  std::shared_ptr<mlx::core::array::Data> owner_;
  mlx::core::Dtype dtype_;
  mlx::core::Shape shape_;
  mlx::core::Strides strides_;
  mlx::core::array::Flags flags_;
  std::size_t logical_nbytes_;
  std::size_t byte_offset_ = 0;
  std::size_t span_nbytes_ = 0;
  const void* base_ = nullptr;
  const void* host_ = nullptr;
  StorageBackend backend_ = StorageBackend::host;
  int ordinal_ = 0;
  bool managed_ = false;
};

// A view of `a`, or why there is none. Throws only what MLX throws: the error of a kernel that failed to compute `a`.
inline std::pair<StorageExportStatus, std::optional<StorageView>> try_export_storage(
    const mlx::core::array& a,
    const StorageExportOptions& options = {}) {
  namespace mx = mlx::core;
  auto refused = [](StorageExportStatus status) {
    return std::pair<StorageExportStatus, std::optional<StorageView>>(status, std::nullopt);
  };

  if (!detail::is_available(a, options.wait_until_available)) {
    return refused(StorageExportStatus::array_not_available);
  }
  const auto backend = detail::loaded_backend();
  if (options.backend && *options.backend != backend) {
    return refused(StorageExportStatus::unsupported_backend);
  }
  StorageView view(a);
  view.backend_ = backend;
  void* const raw = view.owner_ ? view.owner_->buffer().ptr() : nullptr;
  if (raw == nullptr && a.size() != 0) {
    return refused(StorageExportStatus::no_storage);
  }

  const bool row_contiguous = a.flags().row_contiguous || a.size() == 0;
  if (options.require_row_contiguous && !row_contiguous) {
    return refused(StorageExportStatus::unsupported_layout);
  }
  if (a.size() != 0) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < a.ndim(); ++i) {
      if (view.strides_[i] < 0 && view.shape_[i] > 1) {
        return refused(StorageExportStatus::unsupported_layout);
      }
      last += (view.shape_[i] - 1) * view.strides_[i];
    }
    view.span_nbytes_ = (static_cast<std::size_t>(last) + 1) * a.itemsize();
  }
  if (raw == nullptr) {
    return {StorageExportStatus::success, std::move(view)};
  }

  // Where the storage starts and ends.
  std::int64_t offset = a.offset();
  std::optional<std::size_t> nbytes;
  const auto adopted = view.owner_->is_owned() ? std::nullopt : detail::AdoptedMemory::instance().find(raw);
  if (adopted && backend != StorageBackend::metal) {
    view.base_ = adopted->base;
    view.host_ = adopted->host_visible ? adopted->base : nullptr;
    view.ordinal_ = adopted->ordinal;
    view.managed_ = backend == StorageBackend::cuda && adopted->host_visible;
    nbytes = adopted->nbytes;
    if (backend == StorageBackend::host) {
      // The Buffer stands elsewhere, and the offset leads from there to the memory.
      offset -= adopted->base - static_cast<char*>(view.owner_->buffer().raw_ptr());
    }
  } else if (backend == StorageBackend::cuda) {
    const auto& buffer = *static_cast<const detail::CudaBuffer*>(raw);
    if (buffer.device < -1) {
      return refused(StorageExportStatus::unsupported_backend);
    }
    view.base_ = buffer.data;
    view.managed_ = buffer.device == -1;
    view.ordinal_ = view.managed_ ? 0 : buffer.device;
    view.host_ = view.managed_ ? buffer.data : nullptr;
    nbytes = buffer.size;
  } else {
    view.host_ = view.owner_->buffer().raw_ptr();
    view.base_ = backend == StorageBackend::metal ? raw : view.host_;
    if (view.owner_->is_owned() || backend == StorageBackend::metal) {
      nbytes = a.buffer_size();
    }
  }
  if (offset < 0 || offset % static_cast<std::int64_t>(detail::alignment_of(a.dtype())) != 0 ||
      (nbytes && static_cast<std::size_t>(offset) + view.span_nbytes_ > *nbytes)) {
    return refused(StorageExportStatus::invalid_offset);
  }
  view.byte_offset_ = static_cast<std::size_t>(offset);
  return {StorageExportStatus::success, std::move(view)};
}

// A view of `a`. Throws StorageExportError where there is none.
inline StorageView export_storage(const mlx::core::array& a, const StorageExportOptions& options = {}) {
  auto [status, view] = try_export_storage(a, options);
  if (!view) {
    throw StorageExportError(status);
  }
  return *std::move(view);
}

// A view whose storage is an MTL::Buffer.
class MetalStorageView : public StorageView {
 public:
  MTL::Buffer* metal_buffer() const noexcept {
    return static_cast<MTL::Buffer*>(const_cast<void*>(buffer()));
  }

 private:
  explicit MetalStorageView(StorageView&& view) : StorageView(std::move(view)) {}

  friend std::pair<StorageExportStatus, std::optional<MetalStorageView>> try_export_metal_storage(
      const mlx::core::array&,
      const StorageExportOptions&);
};

inline std::pair<StorageExportStatus, std::optional<MetalStorageView>> try_export_metal_storage(
    const mlx::core::array& a,
    const StorageExportOptions& options = {}) {
  if (!mlx::core::metal::is_available()) {
    return {StorageExportStatus::metal_not_available, std::nullopt};
  }
  auto [status, view] = try_export_storage(a, options);
  if (!view) {
    return {status, std::nullopt};
  }
  if (view->backend() != StorageBackend::metal) {
    return {StorageExportStatus::unsupported_backend, std::nullopt};
  }
  return {status, MetalStorageView(*std::move(view))};
}

inline MetalStorageView export_metal_storage(const mlx::core::array& a, const StorageExportOptions& options = {}) {
  auto [status, view] = try_export_metal_storage(a, options);
  if (!view) {
    throw StorageExportError(status);
  }
  return *std::move(view);
}

} // namespace oxmlx

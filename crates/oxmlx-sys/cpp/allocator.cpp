// MLX's allocator, which says so when there is no memory: MLX writes to the null pointer that a failed allocation gives it.
//
// libmlx calls `allocator()` by way of the loader, and a program's own definition comes before the library's. In a shared library of Rust's,
// which hides its symbols, MLX keeps its own one, and only the sizes that `survey.cpp` checks are refused.
#ifdef __linux__

#include "trycatch.h"

#include "mlx/allocator.h"
#include "mlx/device.h"
#include "mlx/version.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace mlx::core::allocator {

namespace {

// A large allocation is tried first: MLX counts those that fail as memory in use.
constexpr std::size_t large = std::size_t{1} << 20;

class Telling final : public Allocator {
 public:
  explicit Telling(Allocator& inner) : inner_(inner) {}

  Buffer malloc(std::size_t size) override {
    if (size >= large && !fits(size)) {
      fail(size);
    }
    auto buffer = inner_.malloc(size);
    if (buffer.ptr() == nullptr) {
      fail(size);
    }
    return buffer;
  }

  void free(Buffer buffer) override {
    inner_.free(buffer);
  }

  std::size_t size(Buffer buffer) const override {
    return inner_.size(buffer);
  }

  Buffer make_buffer(void* ptr, std::size_t size) override {
    return inner_.make_buffer(ptr, size);
  }

  void release(Buffer buffer) override {
    inner_.release(buffer);
  }

 private:
  static bool fits(std::size_t size) {
    // The header that MLX puts before a buffer.
    void* trial = std::malloc(size + sizeof(std::size_t));
    std::free(trial);
    return trial != nullptr;
  }

  [[noreturn]] static void fail(std::size_t size) {
    throw oxmlx::NoMemory("there is no memory for " + std::to_string(size) + " bytes");
  }

  Allocator& inner_;
};

Allocator& of_library() {
  using Get = Allocator& (*)();
  Dl_info library{};
  void* found = nullptr;
  if (dladdr(reinterpret_cast<void*>(&mlx::core::version), &library) != 0) {
    if (void* handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      found = dlsym(handle, "_ZN3mlx4core9allocator9allocatorEv");
    }
  }
  if (found == nullptr) {
    std::abort(); // the library that was linked has lost a symbol that it was linked for
  }
  return reinterpret_cast<Get>(found)();
}

} // namespace

Allocator& allocator() {
  // The allocators of GPUs throw by themselves. Never destroyed: buffers are freed until the very end.
  static auto& chosen = []() -> Allocator& {
    auto& inner = of_library();
    return device_count(Device::gpu) > 0 ? inner : *new Telling(inner);
  }();
  return chosen;
}

} // namespace mlx::core::allocator

#endif

// Streams, evaluation and waiting: the part of MLX that is bound to threads, made independent of them.
#pragma once

#include "array_handle.h"

#include "mlx/device.h"
#include "mlx/stream.h"
#include "mlx/utils.h"

#include <cstdint>
#include <memory>

namespace oxmlx {

// The stream that this thread's operations go to: the one of its innermost scope, else the process-wide one of the default device.
mlx::core::StreamOrDevice current_stream();

} // namespace oxmlx

namespace oxmlx::runtime {

// A wait that touches no array: it holds its own scratch array with the waited-for array's event.
class Waiter {
 public:
  explicit Waiter(const mlx::core::array& a);
  // Blocks until the event is signalled. Throws the error that MLX attached to it, if any.
  void wait();

 private:
  mlx::core::array scratch_;
};

// Makes the process-wide streams this thread's defaults. Once a thread; cheap, starts no OS thread after the first call of the process.
void prepare_thread();

// Whether the default device is the GPU.
bool current_is_gpu();
std::size_t gpu_count();
std::int32_t open_stream(bool gpu);
void enter_stream(bool gpu, std::int32_t index);
void leave_stream() noexcept;
// The innermost scope of this thread, as its stream's index and whether that is a GPU's; -1 outside any.
std::int32_t scope_index() noexcept;
bool scope_is_gpu() noexcept;
// A lazy scalar on the current stream: it is there once the stream has done all it was given before.
mlx::core::array marker();
std::size_t stream_count();

// Null when the array is available already.
std::unique_ptr<Waiter> waiter(const mlx::core::array& a);

rust::Str version_loaded() noexcept;
rust::Str version_compiled() noexcept;
rust::String library_path() noexcept;

// For the tests of the error path: throws one exception of each kind there is.
void throw_for_test(rust::Str kind);

} // namespace oxmlx::runtime

#include "runtime.h"

#include "mlx/backend/cpu/encoder.h"
#include "mlx/compile_impl.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "mlx/version.h"

#include <dlfcn.h>

#include <map>
#include <new>
#include <optional>
#include <stdexcept>

namespace mx = mlx::core;

namespace oxmlx {

namespace {

// One stream a device for the whole process, made on first use and never freed (MLX has no way to free one).
const std::map<mx::Device, mx::Stream>& shared_streams() {
  static const auto streams = [] {
    std::map<mx::Device, mx::Stream> made;
    for (auto type : {mx::Device::cpu, mx::Device::gpu}) {
      for (int i = 0; i < mx::device_count(type); ++i) {
        mx::Device device{type, i};
        made.emplace(device, mx::new_thread_unsafe_stream(device));
      }
    }
    return made;
  }();
  return streams;
}

thread_local std::vector<mx::Stream> scopes;

mx::Stream stream_of(bool gpu, std::int32_t index) {
  return mx::Stream(index, gpu ? mx::Device(mx::Device::gpu) : mx::Device(mx::Device::cpu));
}

} // namespace

mx::StreamOrDevice current_stream() {
  if (!scopes.empty()) [[unlikely]] {
    return scopes.back();
  }
  // The default device may change at any time, and for all threads.
  thread_local mx::Stream process_wide = shared_streams().at(mx::default_device());
  if (process_wide.device != mx::default_device()) [[unlikely]] {
    process_wide = shared_streams().at(mx::default_device());
  }
  return process_wide;
}

} // namespace oxmlx

namespace oxmlx::runtime {

Waiter::Waiter(const mx::array& a) : scratch_(mx::array({}, mx::bool_)) {
  scratch_.attach_event(a.event());
  scratch_.set_status(mx::array::Status::evaluated);
}

void Waiter::wait() {
  scratch_.wait();
}

void prepare_thread() {
  for (const auto& [device, stream] : shared_streams()) {
    mx::set_default_stream(stream);
  }
  // MLX makes more state of a thread when it first needs it. It is made here, so that all of it lives longer than what notices the thread's
  // end (src/lock.rs): encoders, the cache of compiled functions, the stack of traces, which no function but a transform makes.
  scopes.clear();
  mx::cpu::get_command_encoder(shared_streams().at(mx::Device::cpu));
  mx::detail::compile_cache();
  mx::array one(1.0f);
  mx::jvp([](const std::vector<mx::array>& x) { return x; }, {one}, {one});
}

bool current_is_gpu() {
  return (scopes.empty() ? mx::default_device() : scopes.back().device) == mx::Device::gpu;
}

std::size_t gpu_count() {
  return mx::device_count(mx::Device::gpu);
}

std::int32_t open_stream(bool gpu) {
  if (gpu && gpu_count() == 0) {
    throw Refused("no GPU: this MLX library has no GPU backend or found no device");
  }
  return mx::new_thread_unsafe_stream(gpu ? mx::Device::gpu : mx::Device::cpu).index;
}

void enter_stream(bool gpu, std::int32_t index) {
  auto stream = stream_of(gpu, index);
  mx::set_default_stream(stream);
  scopes.push_back(stream);
}

void leave_stream() noexcept {
  if (scopes.empty()) {
    return;
  }
  auto left = scopes.back();
  scopes.pop_back();
  try {
    // The innermost scope that is left on the same device, else the process-wide stream.
    auto stream = shared_streams().at(left.device);
    for (const auto& scope : scopes) {
      if (scope.device == left.device) {
        stream = scope;
      }
    }
    mx::set_default_stream(stream);
  } catch (...) {
    // set_default_stream throws only for a device that does not exist, and this one had a stream.
  }
}

std::int32_t scope_index() noexcept {
  return scopes.empty() ? -1 : scopes.back().index;
}

bool scope_is_gpu() noexcept {
  return !scopes.empty() && scopes.back().device == mx::Device::gpu;
}

mx::array marker() {
  return mx::zeros({}, mx::bool_, current_stream());
}

std::size_t stream_count() {
  return mx::get_streams().size();
}

std::unique_ptr<Waiter> waiter(const mx::array& a) {
  if (a.is_available()) {
    return nullptr;
  }
  if (a.status() == mx::array::Status::unscheduled) {
    throw std::invalid_argument("[wait] the array was not evaluated: call eval or async_eval first");
  }
  return std::make_unique<Waiter>(a);
}

rust::Str version_loaded() noexcept {
  return mx::version();
}

rust::Str version_compiled() noexcept {
#define OXMLX_TEXT_(x) #x
#define OXMLX_TEXT(x) OXMLX_TEXT_(x)
  return OXMLX_TEXT(MLX_VERSION_MAJOR) "." OXMLX_TEXT(MLX_VERSION_MINOR) "." OXMLX_TEXT(MLX_VERSION_PATCH);
}

rust::String library_path() noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&mx::version), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  return rust::String::lossy(info.dli_fname);
}

void throw_for_test(rust::Str kind) {
  const std::string k(kind);
  if (k == "invalid_argument") throw std::invalid_argument("planted invalid_argument");
  if (k == "out_of_range") throw std::out_of_range("planted out_of_range");
  if (k == "overflow_error") throw std::overflow_error("planted overflow_error");
  if (k == "bad_alloc") throw std::bad_alloc();
  if (k == "runtime_error") throw std::runtime_error("planted runtime_error");
  if (k == "int") throw 42;
}

} // namespace oxmlx::runtime

// The public header oxmlx/storage.h, used by a C++ program that knows MLX and nothing of Rust. Exits with 0 when all holds.

#include "oxmlx/storage.h"

#include "mlx/mlx.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace mx = mlx::core;
using oxmlx::export_storage;
using oxmlx::StorageBackend;
using oxmlx::StorageExportError;
using oxmlx::StorageExportOptions;
using Status = oxmlx::StorageExportStatus;
using oxmlx::try_export_metal_storage;
using oxmlx::try_export_storage;

namespace {

int failures = 0;

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                  \
    }                                                                              \
  } while (false)

constexpr StorageExportOptions any_layout{.require_row_contiguous = false};

mx::array counted(mx::Shape shape) {
  int n = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
  auto a = mx::reshape(mx::arange(n, mx::float32), std::move(shape));
  a.eval();
  return a;
}

// The same array, with its offset changed by `bytes`.
mx::array shifted(const mx::array& a, std::int64_t bytes) {
  mx::array step({}, mx::uint8, nullptr, {});
  step.copy_shared_buffer(a, {}, a.flags(), 1, bytes);
  mx::array made(a.shape(), a.dtype(), nullptr, {});
  made.copy_shared_buffer(step, a.strides(), a.flags(), a.data_size());
  made.set_status(mx::array::Status::available);
  return made;
}

void statuses() {
  auto a = counted({2, 3});
  CHECK(try_export_storage(a).first == Status::success);

  auto lazy = a + a;
  for (bool wait : {false, true}) {
    CHECK(try_export_storage(lazy, {.wait_until_available = wait}).first == Status::array_not_available);
    CHECK(lazy.status() == mx::array::Status::unscheduled);
  }
  mx::async_eval(lazy);
  CHECK(try_export_storage(lazy, {.wait_until_available = true}).first == Status::success);

  mx::array bare({3}, mx::float32, nullptr, {});
  bare.set_status(mx::array::Status::available);
  CHECK(try_export_storage(bare).first == Status::no_storage);

  CHECK(try_export_storage(a, {.backend = StorageBackend::host}).first == Status::success);
  CHECK(try_export_storage(a, {.backend = StorageBackend::cuda}).first == Status::unsupported_backend);
  CHECK(try_export_storage(a, {.backend = StorageBackend::metal}).first == Status::unsupported_backend);

  auto transposed = mx::transpose(a);
  transposed.eval();
  CHECK(try_export_storage(transposed).first == Status::unsupported_layout);
  CHECK(try_export_storage(transposed, any_layout).first == Status::success);
  auto backwards = mx::slice(counted({4}), {3}, {-5}, {-1});
  backwards.eval();
  CHECK(try_export_storage(backwards, any_layout).first == Status::unsupported_layout);

  for (std::int64_t bytes : {-4, 2, 1 << 20}) {
    CHECK(try_export_storage(shifted(a, bytes), any_layout).first == Status::invalid_offset);
  }

  CHECK(try_export_metal_storage(a).first == Status::metal_not_available);
  CHECK(!try_export_metal_storage(a).second);
  try {
    oxmlx::export_metal_storage(a);
    CHECK(false);
  } catch (const StorageExportError& error) {
    CHECK(error.status() == Status::metal_not_available);
  }
  try {
    export_storage(transposed);
    CHECK(false);
  } catch (const StorageExportError& error) {
    CHECK(error.status() == Status::unsupported_layout);
    CHECK(std::strlen(error.what()) > 0);
  }
}

void facts() {
  auto a = counted({6, 4});
  auto whole = export_storage(a);
  CHECK(whole.backend() == StorageBackend::host && whole.device() == mx::Device::cpu && !whole.managed());
  CHECK(whole.data() == a.data<float>() && whole.host_data() == whole.data());
  CHECK(whole.byte_offset() == 0 && whole.logical_nbytes() == 96 && whole.storage_span_nbytes() == 96);
  CHECK(whole.dtype() == mx::float32 && whole.shape() == mx::Shape({6, 4}) && whole.strides() == mx::Strides({4, 1}));
  CHECK(whole.contiguous() && whole.row_contiguous() && !whole.col_contiguous());

  auto block = mx::slice(a, {1, 1}, {5, 3}, {2, 1});
  block.eval();
  auto view = export_storage(block, any_layout);
  CHECK(view.storage_id() == whole.storage_id() && view.buffer() == whole.buffer());
  CHECK(view.byte_offset() == 20 && view.logical_nbytes() == 16 && view.storage_span_nbytes() == 40);
  CHECK(static_cast<const float*>(view.data())[8] == 13.0f);

  auto broadcast = mx::broadcast_to(counted({3}), {4, 3});
  broadcast.eval();
  CHECK(export_storage(broadcast, any_layout).storage_span_nbytes() == 12);
  CHECK(export_storage(broadcast, any_layout).logical_nbytes() == 48);

  auto scalar = mx::array(2.0f);
  CHECK(export_storage(scalar).storage_span_nbytes() == 4 && export_storage(scalar).shape().empty());
  auto empty = mx::zeros({0, 3});
  empty.eval();
  CHECK(export_storage(empty).storage_span_nbytes() == 0 && export_storage(empty).logical_nbytes() == 0);
}

void retention() {
  constexpr int n = 4096;
  auto a = counted({n});
  auto view = export_storage(a);
  auto copy = view;
  // Overwritten where nobody else would hold it, and its memory asked for again and again.
  auto updated = mx::slice_update(a, mx::full({n - 1}, -1.0f), mx::Shape{0}, mx::Shape{n - 1});
  a = updated;
  updated.eval();
  CHECK(updated.data<float>() != view.data());
  for (int i = 0; i < 1000; ++i) {
    mx::full({n}, static_cast<float>(i)).eval();
  }
  std::vector<float> expected(n);
  std::iota(expected.begin(), expected.end(), 0.0f);
  CHECK(std::memcmp(copy.data(), expected.data(), n * sizeof(float)) == 0);
}

} // namespace

int main() {
  mx::set_default_device(mx::Device::cpu);
  statuses();
  facts();
  retention();
  std::printf("oxmlx/storage.h: %d failures\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Kernels from Metal or CUDA source, and CUDA kernels that were compiled before.
#pragma once

#include "array_handle.h"
#include "trycatch.h"

#include "mlx/fast.h"

#include <cstdint>
#include <memory>

namespace oxmlx::gpu_kernel {

struct Source;
struct Launch;
struct TemplateArgument;
struct ScalarArgument;

using Handle = mlx::core::array;
using Handles = rust::Slice<const Handle>;

// A kernel that MLX compiles when it first runs.
class GpuKernel {
 public:
  explicit GpuKernel(mlx::core::fast::CustomKernelFunction&& function) : function_(std::move(function)) {}
  rust::Vec<Handle>
  call(Handles inputs, const Launch& launch, rust::Slice<const TemplateArgument> arguments, bool verbose) const;

 private:
  mlx::core::fast::CustomKernelFunction function_;
};

std::unique_ptr<GpuKernel> metal_kernel(const Source& source, bool atomic_outputs, std::uint8_t math_mode);
std::unique_ptr<GpuKernel> cuda_kernel(const Source& source, std::int32_t shared_memory);
rust::Vec<Handle> precompiled_cuda_kernel(
    const Source& source,
    rust::Slice<const std::uint8_t> compiled,
    Handles inputs,
    const Launch& launch,
    rust::Slice<const ScalarArgument> scalars,
    std::int32_t shared_memory);

} // namespace oxmlx::gpu_kernel

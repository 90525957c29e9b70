// Kernels from Metal or CUDA source, and CUDA kernels that were compiled before.
#pragma once

#include "array_handle.h"
#include "trycatch.h"

#include "mlx/fast.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace oxmlx::gpu_kernel {

struct Source;
struct Launch;
struct TemplateArgument;
struct ScalarArgument;

// A kernel that MLX compiles when it first runs.
class GpuKernel {
 public:
  explicit GpuKernel(mlx::core::fast::CustomKernelFunction&& function) : function_(std::move(function)) {}

  // What runs the kernel over arrays of these shapes and dtypes.
  std::shared_ptr<mlx::core::Primitive> primitive(
      const std::vector<mlx::core::array>& inputs,
      const std::vector<mlx::core::array>& outputs,
      const Launch& launch,
      mlx::core::Stream stream) const;

 private:
  mlx::core::fast::CustomKernelFunction function_;
};

std::shared_ptr<GpuKernel> metal_kernel(const Source& source, bool atomic_outputs, std::uint8_t math_mode);
std::shared_ptr<GpuKernel> cuda_kernel(const Source& source, std::int32_t shared_memory);
std::shared_ptr<GpuKernel> precompiled_cuda_kernel(
    const Source& source,
    rust::Slice<const std::uint8_t> compiled,
    rust::Slice<const ScalarArgument> scalars,
    std::int32_t shared_memory);

} // namespace oxmlx::gpu_kernel

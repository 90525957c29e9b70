#include "oxmlx-sys/src/gpu_kernel.rs.h"

#include "mlx/primitives.h"

#include <string>
#include <utility>
#include <vector>

namespace mx = mlx::core;

namespace oxmlx::gpu_kernel {

namespace {

std::vector<std::string> texts(const rust::Vec<rust::String>& x) {
  return {x.begin(), x.end()};
}

std::tuple<int, int, int> triple(const std::array<std::int32_t, 3>& x) {
  return {x[0], x[1], x[2]};
}

// An array without values that stands for `a` while the source is written. MLX binds what has fewer than 8 elements in Metal's
// `constant` space, and a scalar as a reference: a body that hands such an input to a function of `device` pointers would compile for
// some sizes and not for others. So every stand-in has 8 elements and an axis.
mx::array stand_in(const mx::array& a) {
  mx::Shape shape(std::max<std::size_t>(a.ndim(), 1), 1);
  shape[0] = 8;
  return mx::array(std::move(shape), a.dtype(), nullptr, {});
}

} // namespace

std::shared_ptr<mx::Primitive> GpuKernel::primitive(
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs,
    const Launch& launch,
    mx::Stream stream) const {
  std::vector<std::pair<std::string, mx::fast::TemplateArg>> arguments;
  for (const auto& argument : launch.arguments) {
    mx::fast::TemplateArg value = argument.value;
    if (argument.kind == 1) {
      value = argument.value != 0;
    } else if (argument.kind == 2) {
      value = dtype_of(static_cast<std::uint8_t>(argument.value));
    }
    arguments.emplace_back(std::string(argument.name), value);
  }
  std::vector<mx::array> stand_ins;
  for (const auto& in : inputs) {
    stand_ins.push_back(stand_in(in));
  }
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (const auto& out : outputs) {
    shapes.push_back(out.shape());
    dtypes.push_back(out.dtype());
  }
  auto made = function_(
      stand_ins,
      shapes,
      dtypes,
      triple(launch.grid),
      triple(launch.threadgroup),
      std::move(arguments),
      launch.has_init ? std::optional<float>(launch.init) : std::nullopt,
      false,
      stream);
  return made.at(0).primitive_ptr();
}

std::shared_ptr<GpuKernel> metal_kernel(const Source& source, bool atomic_outputs, std::uint8_t math_mode) {
  mx::CompileOptions options;
  options.math_mode = static_cast<mx::MathMode>(math_mode);
  return std::make_shared<GpuKernel>(mx::fast::metal_kernel(
      std::string(source.name),
      texts(source.input_names),
      texts(source.output_names),
      std::string(source.body),
      std::string(source.header),
      source.row_contiguous,
      atomic_outputs,
      options));
}

std::shared_ptr<GpuKernel> cuda_kernel(const Source& source, std::int32_t shared_memory) {
  return std::make_shared<GpuKernel>(mx::fast::cuda_kernel(
      std::string(source.name),
      texts(source.input_names),
      texts(source.output_names),
      std::string(source.body),
      std::string(source.header),
      source.row_contiguous,
      shared_memory));
}

std::shared_ptr<GpuKernel> precompiled_cuda_kernel(
    const Source& source,
    rust::Slice<const std::uint8_t> compiled,
    rust::Slice<const ScalarArgument> scalars,
    std::int32_t shared_memory) {
  std::vector<mx::fast::ScalarArg> given;
  for (const auto& scalar : scalars) {
    switch (scalar.kind) {
      case 0:
        given.emplace_back(scalar.whole != 0);
        break;
      case 1:
        given.emplace_back(static_cast<int>(scalar.whole));
        break;
      default:
        given.emplace_back(scalar.real);
    }
  }
  return std::make_shared<GpuKernel>(
      [name = std::string(source.name),
       code = std::string(reinterpret_cast<const char*>(compiled.data()), compiled.size()),
       given = std::move(given),
       shared_memory,
       row_contiguous = source.row_contiguous](
          const std::vector<mx::array>& inputs,
          const std::vector<mx::Shape>& shapes,
          const std::vector<mx::Dtype>& dtypes,
          std::tuple<int, int, int> grid,
          std::tuple<int, int, int> threadgroup,
          const std::vector<std::pair<std::string, mx::fast::TemplateArg>>&,
          std::optional<float> init,
          bool,
          mx::StreamOrDevice stream) {
        return mx::fast::precompiled_cuda_kernel(
            name, code, inputs, shapes, dtypes, given, grid, threadgroup, shared_memory, init, row_contiguous, stream);
      });
}

} // namespace oxmlx::gpu_kernel

#include "oxmlx-sys/src/gpu_kernel.rs.h"

#include "array.h"
#include "convert.h"
#include "runtime.h"

#include <string>
#include <utility>
#include <vector>

namespace oxmlx::gpu_kernel {

namespace {

std::vector<std::string> texts(const rust::Vec<rust::String>& x) {
  return {x.begin(), x.end()};
}

std::vector<mx::Shape> shapes(const Launch& launch) {
  std::vector<mx::Shape> out;
  auto at = launch.dimensions.begin();
  for (auto ndim : launch.output_ndims) {
    out.emplace_back(at, at + static_cast<std::ptrdiff_t>(ndim));
    at += static_cast<std::ptrdiff_t>(ndim);
  }
  return out;
}

std::vector<mx::Dtype> dtypes(const Launch& launch) {
  std::vector<mx::Dtype> out;
  for (auto code : launch.output_dtypes) {
    out.push_back(dtype_of(code));
  }
  return out;
}

std::tuple<int, int, int> triple(const std::array<std::int32_t, 3>& x) {
  return {x[0], x[1], x[2]};
}

std::optional<float> init_value(const Launch& launch) {
  return launch.has_init ? std::optional<float>(launch.init) : std::nullopt;
}

} // namespace

rust::Vec<Handle> GpuKernel::call(
    Handles inputs,
    const Launch& launch,
    rust::Slice<const TemplateArgument> arguments,
    bool verbose) const {
  std::vector<std::pair<std::string, mx::fast::TemplateArg>> given;
  for (const auto& argument : arguments) {
    mx::fast::TemplateArg value = argument.value;
    if (argument.kind == 1) {
      value = argument.value != 0;
    } else if (argument.kind == 2) {
      value = dtype_of(static_cast<std::uint8_t>(argument.value));
    }
    given.emplace_back(std::string(argument.name), value);
  }
  return from_arrays(function_(
      {inputs.begin(), inputs.end()},
      shapes(launch),
      dtypes(launch),
      triple(launch.grid),
      triple(launch.threadgroup),
      std::move(given),
      init_value(launch),
      verbose,
      current_stream()));
}

std::unique_ptr<GpuKernel> metal_kernel(const Source& source, bool atomic_outputs, std::uint8_t math_mode) {
  mx::CompileOptions options;
  options.math_mode = static_cast<mx::MathMode>(math_mode);
  return std::make_unique<GpuKernel>(mx::fast::metal_kernel(
      std::string(source.name),
      texts(source.input_names),
      texts(source.output_names),
      std::string(source.body),
      std::string(source.header),
      source.row_contiguous,
      atomic_outputs,
      options));
}

std::unique_ptr<GpuKernel> cuda_kernel(const Source& source, std::int32_t shared_memory) {
  return std::make_unique<GpuKernel>(mx::fast::cuda_kernel(
      std::string(source.name),
      texts(source.input_names),
      texts(source.output_names),
      std::string(source.body),
      std::string(source.header),
      source.row_contiguous,
      shared_memory));
}

rust::Vec<Handle> precompiled_cuda_kernel(
    const Source& source,
    rust::Slice<const std::uint8_t> compiled,
    Handles inputs,
    const Launch& launch,
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
  return from_arrays(
      mx::fast::precompiled_cuda_kernel(
          std::string(source.name),
          std::string(reinterpret_cast<const char*>(compiled.data()), compiled.size()),
          {inputs.begin(), inputs.end()},
          shapes(launch),
          dtypes(launch),
          given,
          triple(launch.grid),
          triple(launch.threadgroup),
          shared_memory,
          init_value(launch),
          source.row_contiguous,
          current_stream()));
}

} // namespace oxmlx::gpu_kernel

// A primitive of MLX's in a wrapper that tells how its tasks came out, for as long as it is dispatched. Without a fault to tell it to, one
// that MLX must not run: outputs without elements are given, others are one value everywhere, or what `inner` makes of the first input.
#pragma once

#include "evaluation.h"

#include "mlx/primitives.h"

#include <optional>

namespace oxmlx::evaluation {

class Guarded : public mlx::core::Primitive {
 public:
  Guarded(std::shared_ptr<mlx::core::Primitive> inner, std::shared_ptr<Batch> batch, Fault* fault)
      : Primitive(inner->stream()), inner_(std::move(inner)), batch_(std::move(batch)), fault_(fault) {}

  // The only output is this evaluated scalar everywhere.
  void fill_with(mlx::core::array value) {
    fill_ = std::move(value);
  }

  // The second input are places among this many, which `inner` does not check: on the CPU those outside are brought to the last one.
  void keep_inside(std::uint32_t count) {
    places_ = count;
  }

  void eval_cpu(const std::vector<mlx::core::array>& inputs, std::vector<mlx::core::array>& outputs) override;
  void eval_gpu(const std::vector<mlx::core::array>& inputs, std::vector<mlx::core::array>& outputs) override;

  // The wrapper never meets a transform. Inherited, these would be symbols that the program asks for before it can tell that it was given
  // another release of libmlx.
  std::vector<mlx::core::array> jvp(
      const std::vector<mlx::core::array>& primals,
      const std::vector<mlx::core::array>& tangents,
      const std::vector<int>& argnums) override {
    return inner_->jvp(primals, tangents, argnums);
  }

  std::vector<mlx::core::array> vjp(
      const std::vector<mlx::core::array>& primals,
      const std::vector<mlx::core::array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<mlx::core::array>& outputs) override {
    return inner_->vjp(primals, cotangents, argnums, outputs);
  }

  std::pair<std::vector<mlx::core::array>, std::vector<int>> vmap(
      const std::vector<mlx::core::array>& inputs,
      const std::vector<int>& axes) override {
    return inner_->vmap(inputs, axes);
  }

  std::vector<mlx::core::Shape> output_shapes(const std::vector<mlx::core::array>& inputs) override {
    return inner_->output_shapes(inputs);
  }

  const char* name() const override {
    return inner_->name();
  }

 private:
  bool given(std::vector<mlx::core::array>& outputs);

  std::shared_ptr<mlx::core::Primitive> inner_;
  std::shared_ptr<Batch> batch_;
  Fault* fault_;
  std::optional<mlx::core::array> fill_;
  std::uint32_t places_{0};
};

} // namespace oxmlx::evaluation

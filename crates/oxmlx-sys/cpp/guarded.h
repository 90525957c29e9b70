// A primitive of MLX's in a wrapper that tells how its tasks came out, for as long as it is dispatched.
#pragma once

#include "evaluation.h"

#include "mlx/primitives.h"

namespace oxmlx::evaluation {

class Guarded : public mlx::core::Primitive {
 public:
  Guarded(std::shared_ptr<mlx::core::Primitive> inner, std::shared_ptr<Batch> batch, Fault* fault)
      : Primitive(inner->stream()), inner_(std::move(inner)), batch_(std::move(batch)), fault_(fault) {}

  void eval_cpu(const std::vector<mlx::core::array>& inputs, std::vector<mlx::core::array>& outputs) override;
  void eval_gpu(const std::vector<mlx::core::array>& inputs, std::vector<mlx::core::array>& outputs) override;

  const char* name() const override {
    return inner_->name();
  }

 private:
  std::shared_ptr<mlx::core::Primitive> inner_;
  std::shared_ptr<Batch> batch_;
  Fault* fault_;
};

} // namespace oxmlx::evaluation

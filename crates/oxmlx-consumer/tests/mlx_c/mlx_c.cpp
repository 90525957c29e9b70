// The few functions of MLX's C API that the test needs, as mlx-c has them: an mlx_array's ctx is a heap mlx::core::array.

#include "mlx/mlx.h"

extern "C" {

struct mlx_array {
  void* ctx;
};

mlx_array mlx_array_new_float_data(const float* data, int n) {
  return {new mlx::core::array(data, {n}, mlx::core::float32)};
}

int mlx_array_free(mlx_array a) {
  delete static_cast<mlx::core::array*>(a.ctx);
  return 0;
}

size_t mlx_array_size(mlx_array a) {
  return static_cast<mlx::core::array*>(a.ctx)->size();
}

int mlx_array_eval(mlx_array a) {
  static_cast<mlx::core::array*>(a.ctx)->eval();
  return 0;
}

const float* mlx_array_data_float32(mlx_array a) {
  return static_cast<mlx::core::array*>(a.ctx)->data<float>();
}

int mlx_square(mlx_array* result, mlx_array a) {
  auto squared = mlx::core::square(*static_cast<mlx::core::array*>(a.ctx));
  delete static_cast<mlx::core::array*>(result->ctx);
  result->ctx = new mlx::core::array(std::move(squared));
  return 0;
}

} // extern "C"

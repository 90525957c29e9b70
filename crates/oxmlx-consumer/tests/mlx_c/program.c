/* A C program on MLX's C API that shares arrays with oxmlx. Exits with 0 when all holds. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The program's own declaration: one pointer. */
typedef struct mlx_array_ {
  void* ctx;
} mlx_array;

mlx_array mlx_array_new_float_data(const float* data, int n);
int mlx_array_free(mlx_array a);
size_t mlx_array_size(mlx_array a);
int mlx_array_eval(mlx_array a);
const float* mlx_array_data_float32(mlx_array a);
int mlx_square(mlx_array* result, mlx_array a);

typedef struct oxc_array oxc_array;
oxc_array* oxc_from_mlx_c(mlx_array a, bool borrow);
mlx_array oxc_into_mlx_c(oxc_array* a);
oxc_array* oxc_double(const oxc_array* a);
uintptr_t oxc_data(const oxc_array* a);
int oxc_read(const oxc_array* a, void* out);
void oxc_free(oxc_array* a);
const char* oxc_last_error(void);

#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      fprintf(stderr, "line %d: not so: %s (last error: %s)\n", __LINE__, #condition, oxc_last_error()); \
      return 1;                                                                                          \
    }                                                                                                    \
  } while (0)

int main(void) {
  const float values[3] = {1.0f, 2.0f, 3.0f};
  float read[3];

  /* From the C API to oxmlx: borrowed, and then given away. */
  mlx_array a = mlx_array_new_float_data(values, 3);
  oxc_array* shared = oxc_from_mlx_c(a, true);
  CHECK(shared != NULL);
  CHECK(oxc_data(shared) == (uintptr_t)mlx_array_data_float32(a));
  oxc_free(shared);
  CHECK(mlx_array_size(a) == 3 && mlx_array_data_float32(a)[2] == 3.0f);
  const float* data = mlx_array_data_float32(a);
  oxc_array* owned = oxc_from_mlx_c(a, false);
  CHECK(owned != NULL && oxc_data(owned) == (uintptr_t)data);
  CHECK(oxc_read(owned, read) == 0 && read[0] == 1.0f && read[2] == 3.0f);

  /* From oxmlx to the C API, computed with there, and back. */
  oxc_array* doubled = oxc_double(owned);
  CHECK(doubled != NULL);
  uintptr_t before = oxc_data(doubled);
  mlx_array b = oxc_into_mlx_c(doubled);
  CHECK(b.ctx != NULL && mlx_array_size(b) == 3);
  CHECK((uintptr_t)mlx_array_data_float32(b) == before);
  mlx_array squared = {NULL};
  mlx_square(&squared, b);
  mlx_array_free(b);
  mlx_array_eval(squared);
  CHECK(mlx_array_data_float32(squared)[2] == 36.0f);
  oxc_array* back = oxc_from_mlx_c(squared, false);
  CHECK(back != NULL && oxc_read(back, read) == 0 && read[0] == 4.0f && read[1] == 16.0f);
  oxc_free(back);
  oxc_free(owned);

  /* The empty handle is an error, not a crash. */
  mlx_array empty = {NULL};
  CHECK(oxc_from_mlx_c(empty, false) == NULL);
  puts("mlx-c handles: all holds");
  return 0;
}

// silu(gate) * up: one element a thread.
size_t count = 1;
for (int d = 0; d < gate_ndim; ++d) {
  count *= gate_shape[d];
}
size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
if (i < count) {
  float g = float(gate[i]);
  out[i] = T(g / (1.0f + expf(-g)) * float(up[i]));
}

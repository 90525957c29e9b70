// log(sum(exp(x))) of a row: one block a row.
__shared__ float shared[32];
int n = x_shape[x_ndim - 1];
int lane = threadIdx.x % 32;
int warp = threadIdx.x / 32;
int warps = blockDim.x / 32;
auto values = x + size_t(blockIdx.x) * n;
const float lowest = __int_as_float(0xff800000);

float best = lowest;
for (int i = threadIdx.x; i < n; i += blockDim.x) {
  best = fmaxf(best, float(values[i]));
}
for (int step = 16; step > 0; step /= 2) {
  best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, step));
}
if (lane == 0) {
  shared[warp] = best;
}
__syncthreads();
best = lane < warps ? shared[lane] : lowest;
for (int step = 16; step > 0; step /= 2) {
  best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, step));
}
// All have read the maxima before the sums take their place.
__syncthreads();

float shift = isfinite(best) ? best : 0.0f;
float sum = 0.0f;
for (int i = threadIdx.x; i < n; i += blockDim.x) {
  sum += expf(float(values[i]) - shift);
}
for (int step = 16; step > 0; step /= 2) {
  sum += __shfl_xor_sync(0xffffffff, sum, step);
}
if (lane == 0) {
  shared[warp] = sum;
}
__syncthreads();
sum = lane < warps ? shared[lane] : 0.0f;
for (int step = 16; step > 0; step /= 2) {
  sum += __shfl_xor_sync(0xffffffff, sum, step);
}
if (threadIdx.x == 0) {
  out[blockIdx.x] = shift + logf(sum);
}

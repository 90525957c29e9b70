// log(sum(exp(x))) of a row: one thread group a row.
threadgroup float shared[32];
uint n = x_shape[x_ndim - 1];
uint row = threadgroup_position_in_grid.x;
uint first = thread_position_in_threadgroup.x;
uint lane = thread_index_in_simdgroup;
auto values = x + size_t(row) * n;

float best = -INFINITY;
for (uint i = first; i < n; i += threads_per_threadgroup.x) {
  best = metal::max(best, float(values[i]));
}
best = simd_max(best);
if (lane == 0) {
  shared[simdgroup_index_in_threadgroup] = best;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
best = simd_max(lane < simdgroups_per_threadgroup ? shared[lane] : -INFINITY);
// All have read the maxima before the sums take their place.
threadgroup_barrier(mem_flags::mem_threadgroup);

float shift = metal::isfinite(best) ? best : 0.0f;
float sum = 0.0f;
for (uint i = first; i < n; i += threads_per_threadgroup.x) {
  sum += metal::precise::exp(float(values[i]) - shift);
}
sum = simd_sum(sum);
if (lane == 0) {
  shared[simdgroup_index_in_threadgroup] = sum;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
sum = simd_sum(lane < simdgroups_per_threadgroup ? shared[lane] : 0.0f);
if (first == 0) {
  out[row] = shift + metal::precise::log(sum);
}

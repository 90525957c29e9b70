// queries @ keys^T with keys of BITS bits in groups of GROUP: one SIMD group a score.
constexpr uint per_word = 32 / BITS;
constexpr uint mask = (1u << BITS) - 1;
uint lane = thread_index_in_simdgroup;
uint row = thread_position_in_grid.x / 32;
uint key = thread_position_in_grid.y;
uint heads = queries_shape[1];
uint length = queries_shape[2];
uint width = queries_shape[3];
uint kv_heads = keys_shape[1];
uint count = keys_shape[2];
uint batch = row / (heads * length);
uint head = row / length % heads / (heads / kv_heads);
size_t at = (size_t(batch) * kv_heads + head) * count + key;
auto query = queries + size_t(row) * width;
auto words = keys + at * (width / per_word);
auto scale = scales + at * (width / GROUP);
auto bias = biases + at * (width / GROUP);

float score = 0.0f;
for (uint w = lane; w < width / per_word; w += 32) {
  uint word = words[w];
  uint first = w * per_word;
  float dot = 0.0f;
  float total = 0.0f;
  for (uint i = 0; i < per_word; ++i) {
    float q = float(query[first + i]);
    dot += q * float((word >> (i * BITS)) & mask);
    total += q;
  }
  score += float(scale[first / GROUP]) * dot + float(bias[first / GROUP]) * total;
}
score = simd_sum(score);
if (lane == 0) {
  out[size_t(row) * count + key] = score;
}

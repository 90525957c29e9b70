// queries @ keys^T with keys of BITS bits in groups of GROUP: one warp a score.
constexpr int per_word = 32 / BITS;
constexpr unsigned mask = (1u << BITS) - 1;
int lane = threadIdx.x;
int row = blockIdx.x;
int key = blockIdx.y * blockDim.y + threadIdx.y;
int heads = queries_shape[1];
int length = queries_shape[2];
int width = queries_shape[3];
int kv_heads = keys_shape[1];
int count = keys_shape[2];
// A whole warp beyond the last key.
if (key >= count) {
  return;
}
int batch = row / (heads * length);
int head = row / length % heads / (heads / kv_heads);
size_t at = (size_t(batch) * kv_heads + head) * count + key;
auto query = queries + size_t(row) * width;
auto words = keys + at * (width / per_word);
auto scale = scales + at * (width / GROUP);
auto bias = biases + at * (width / GROUP);

float score = 0.0f;
for (int w = lane; w < width / per_word; w += 32) {
  unsigned word = words[w];
  int first = w * per_word;
  float dot = 0.0f;
  float total = 0.0f;
  for (int i = 0; i < per_word; ++i) {
    float q = float(query[first + i]);
    dot += q * float((word >> (i * BITS)) & mask);
    total += q;
  }
  score += float(scale[first / GROUP]) * dot + float(bias[first / GROUP]) * total;
}
for (int step = 16; step > 0; step /= 2) {
  score += __shfl_xor_sync(0xffffffff, score, step);
}
if (lane == 0) {
  out[size_t(row) * count + key] = score;
}

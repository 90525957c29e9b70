// Runs Metal kernels on the host, to see on Linux what a .metal file computes.
//
// Every thread of a thread group is a fiber of one OS thread; a barrier or a function of a SIMD group (32 threads) switches to the next.
// Fibers run in one order and then in the other, over outputs that were filled with different bytes: a result that depends on either,
// as one does that lacks a barrier or leaves an element unwritten, is a failure. So are a barrier that not all threads reach, threads of
// a SIMD group in different functions, and an access beyond a buffer, which ends at a page that can't be touched.
// It knows what kernels here use of the language, not all of it.
#pragma once

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

namespace emulator {

[[noreturn]] inline void fail(const std::string& text) {
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
  std::exit(3);
}

// A 16-bit float: arithmetic is rounded after every step, as it is on the GPU.
template <typename Codec>
struct Small {
  std::uint16_t bits = 0;
  Small() = default;
  template <typename N>
    requires std::is_arithmetic_v<N>
  Small(N x) : bits(Codec::encode(static_cast<float>(x))) {}
  template <typename Other>
  explicit Small(Small<Other> x) : Small(static_cast<float>(x)) {}
  operator float() const {
    return Codec::decode(bits);
  }
  template <typename N>
  Small& operator+=(N x) {
    return *this = Small(float(*this) + float(x));
  }
  template <typename N>
  Small& operator-=(N x) {
    return *this = Small(float(*this) - float(x));
  }
  template <typename N>
  Small& operator*=(N x) {
    return *this = Small(float(*this) * float(x));
  }
};

template <typename S>
concept is_small = requires(S s) { []<typename C>(Small<C>) {}(s); };

#define EMULATOR_SMALL(op)                                    \
  template <typename A, typename B>                           \
    requires is_small<A> && std::same_as<A, B>                \
  A operator op(A a, B b) {                                   \
    return A(static_cast<float>(a) op static_cast<float>(b)); \
  }
EMULATOR_SMALL(+)
EMULATOR_SMALL(-)
EMULATOR_SMALL(*)
EMULATOR_SMALL(/)
#undef EMULATOR_SMALL

struct Bfloat {
  static float decode(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
  static std::uint16_t encode(float x) {
    auto bits = std::bit_cast<std::uint32_t>(x);
    if (std::isnan(x)) {
      return 0x7fc0;
    }
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

struct Half {
  static float decode(std::uint16_t bits) {
    int exponent = bits >> 10 & 31;
    float fraction = static_cast<float>(bits & 1023);
    float size = exponent == 31  ? (bits & 1023 ? NAN : INFINITY)
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
  }
  static std::uint16_t encode(float x) {
    std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    float size = std::fabs(x);
    if (std::isnan(x)) {
      return 0x7e00;
    }
    if (size >= 65520.0f) {
      return sign | 0x7c00;
    }
    int exponent = size < 0x1p-14f ? -14 : std::ilogb(size);
    // In units of the last place, to the nearest even one; a carry goes into the exponent by itself.
    auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    std::uint32_t base = size < 0x1p-14f ? 0 : static_cast<std::uint32_t>(exponent + 14) << 10;
    return static_cast<std::uint16_t>(sign | (base + units));
  }
};

// What a thread waits for: a number that is another one when it may go on.
struct Wait {
  const unsigned* generation = nullptr;
  unsigned seen = 0;
};

struct Simd {
  unsigned alive = 0;
  unsigned arrived = 0;
  unsigned generation = 0;
  const char* what = "";
  // Two of each: a thread may be in the next exchange while another has yet to read this one.
  std::uint32_t active[2] = {0, 0};
  alignas(16) unsigned char slots[2][32][16];

  void release() {
    arrived = 0;
    ++generation;
  }
};

struct Fiber {
  ucontext_t context;
  std::vector<unsigned char> stack = std::vector<unsigned char>(64 << 10);
  Wait wait;
  bool done = false;
};

struct Group {
  std::vector<Fiber> fibers;
  std::vector<Simd> simds;
  ucontext_t scheduler;
  std::function<void(unsigned)> body;
  unsigned threads = 0;
  unsigned current = 0;
  unsigned arrived = 0;
  unsigned generation = 0;
  unsigned finished = 0;

  void pause(const unsigned& generation) {
    auto& fiber = fibers[current];
    fiber.wait = {&generation, generation};
    swapcontext(&fiber.context, &scheduler);
  }

  void barrier() {
    if (finished > 0) {
      fail("a thread ended before a barrier that others wait at");
    }
    if (++arrived == threads) {
      arrived = 0;
      ++generation;
    } else {
      pause(generation);
    }
  }

  void finish() {
    fibers[current].done = true;
    ++finished;
    if (arrived > 0) {
      fail("a thread ended before a barrier that others wait at");
    }
    auto& simd = simds[current / 32];
    if (--simd.alive > 0 && simd.arrived == simd.alive) {
      simd.release();
    }
  }

  static void enter();
  void run(unsigned count, bool backwards);
};

inline Group group;

inline void Group::enter() {
  group.body(group.current);
  group.finish();
  swapcontext(&group.fibers[group.current].context, &group.scheduler);
}

inline void Group::run(unsigned count, bool backwards) {
  threads = count;
  finished = arrived = 0;
  if (fibers.size() < count) {
    fibers.resize(count);
  }
  simds.assign((count + 31) / 32, {});
  for (unsigned i = 0; i < count; ++i) {
    auto& fiber = fibers[i];
    fiber.done = false;
    fiber.wait = {};
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Group::enter, 0);
    ++simds[i / 32].alive;
  }
  while (finished < count) {
    bool moved = false;
    for (unsigned i = 0; i < count; ++i) {
      current = backwards ? count - 1 - i : i;
      auto& fiber = fibers[current];
      if (!fiber.done && (fiber.wait.generation == nullptr || *fiber.wait.generation != fiber.wait.seen)) {
        moved = true;
        swapcontext(&scheduler, &fiber.context);
      }
    }
    if (!moved) {
      fail(
          "threads wait for each other: not all of a group are at one barrier, or not all of a SIMD group at one "
          "function");
    }
  }
}

// What the threads of a SIMD group gave.
template <typename T>
struct Lanes {
  std::array<T, 32> values;
  std::uint32_t active;

  bool has(unsigned lane) const {
    return lane < 32 && active >> lane & 1;
  }
};

template <typename T>
Lanes<T> exchange(const char* what, T value) {
  static_assert(sizeof(T) <= 16);
  auto& simd = group.simds[group.current / 32];
  unsigned lane = group.current % 32;
  unsigned side = simd.generation & 1;
  if (simd.arrived == 0) {
    simd.what = what;
    simd.active[side] = 0;
  } else if (std::strcmp(simd.what, what) != 0) {
    fail(std::string("threads of one SIMD group are in ") + simd.what + " and in " + what);
  }
  std::memcpy(simd.slots[side][lane], &value, sizeof(T));
  simd.active[side] |= 1u << lane;
  if (++simd.arrived == simd.alive) {
    simd.release();
  } else {
    group.pause(simd.generation);
  }
  Lanes<T> lanes{{}, simd.active[side]};
  for (unsigned i = 0; i < 32; ++i) {
    std::memcpy(static_cast<void*>(&lanes.values[i]), simd.slots[side][i], sizeof(T));
  }
  return lanes;
}

template <typename T, typename F>
T fold(const char* what, T value, F&& f) {
  auto lanes = exchange(what, value);
  bool first = true;
  T result{};
  for (unsigned i = 0; i < 32; ++i) {
    if (lanes.has(i)) {
      result = first ? lanes.values[i] : T(f(result, lanes.values[i]));
      first = false;
    }
  }
  return result;
}

template <typename T>
T from_lane(const char* what, T value, unsigned lane) {
  auto lanes = exchange(what, value);
  // What an inactive lane gives is undefined; a kernel that reads one gets its own value back.
  return lanes.has(lane) ? lanes.values[lane] : value;
}

} // namespace emulator

namespace metal {

template <typename T, int N>
struct alignas((N == 3 ? 4 : N) * sizeof(T)) vec {
  T data[N];
};

#define EMULATOR_VEC(N, ...)                               \
  template <typename T>                                    \
  struct alignas((N == 3 ? 4 : N) * sizeof(T)) vec<T, N> { \
    T __VA_ARGS__;                                         \
    T& operator[](int i) {                                 \
      return (&x)[i];                                      \
    }                                                      \
    const T& operator[](int i) const {                     \
      return (&x)[i];                                      \
    }                                                      \
  };
EMULATOR_VEC(2, x, y)
EMULATOR_VEC(3, x, y, z)
EMULATOR_VEC(4, x, y, z, w)
#undef EMULATOR_VEC

#define EMULATOR_ARITHMETIC(op)                     \
  template <typename T, int N>                      \
  vec<T, N> operator op(vec<T, N> a, vec<T, N> b) { \
    for (int i = 0; i < N; ++i) {                   \
      a[i] = a[i] op b[i];                          \
    }                                               \
    return a;                                       \
  }                                                 \
  template <typename T, int N>                      \
  vec<T, N> operator op(vec<T, N> a, T b) {         \
    for (int i = 0; i < N; ++i) {                   \
      a[i] = a[i] op b;                             \
    }                                               \
    return a;                                       \
  }
EMULATOR_ARITHMETIC(+)
EMULATOR_ARITHMETIC(-)
EMULATOR_ARITHMETIC(*)
EMULATOR_ARITHMETIC(/)
#undef EMULATOR_ARITHMETIC

template <typename T, int N>
T dot(vec<T, N> a, vec<T, N> b) {
  T sum = a[0] * b[0];
  for (int i = 1; i < N; ++i) {
    sum = sum + a[i] * b[i];
  }
  return sum;
}

using half = emulator::Small<emulator::Half>;
using bfloat = emulator::Small<emulator::Bfloat>;
using float16_t = half;
using bfloat16_t = bfloat;
using float2 = vec<float, 2>;
using float3 = vec<float, 3>;
using float4 = vec<float, 4>;
using half2 = vec<half, 2>;
using half4 = vec<half, 4>;
using int2 = vec<int, 2>;
using int4 = vec<int, 4>;
using uint2 = vec<uint, 2>;
using uint3 = vec<uint, 3>;
using uint4 = vec<uint, 4>;

template <typename To, typename From>
To as_type(From x) {
  return std::bit_cast<To>(x);
}

#define EMULATOR_UNARY(name)            \
  inline float name(float x) {          \
    return std::name(x);                \
  }                                     \
  inline half name(half x) {            \
    return half(std::name(float(x)));   \
  }                                     \
  inline bfloat name(bfloat x) {        \
    return bfloat(std::name(float(x))); \
  }
#define EMULATOR_FUNCTIONS             \
  EMULATOR_UNARY(exp)                  \
  EMULATOR_UNARY(exp2)                 \
  EMULATOR_UNARY(log)                  \
  EMULATOR_UNARY(log2)                 \
  EMULATOR_UNARY(sqrt)                 \
  EMULATOR_UNARY(sin)                  \
  EMULATOR_UNARY(cos)                  \
  EMULATOR_UNARY(tanh)                 \
  inline float rsqrt(float x) {        \
    return 1.0f / std::sqrt(x);        \
  }                                    \
  inline float pow(float x, float y) { \
    return std::pow(x, y);             \
  }
EMULATOR_FUNCTIONS
EMULATOR_UNARY(floor)
EMULATOR_UNARY(ceil)
EMULATOR_UNARY(trunc)
EMULATOR_UNARY(rint)
EMULATOR_UNARY(round)
EMULATOR_UNARY(fabs)
namespace precise {
EMULATOR_FUNCTIONS
}
namespace fast {
EMULATOR_FUNCTIONS
}
#undef EMULATOR_FUNCTIONS
#undef EMULATOR_UNARY

inline bool isnan(float x) {
  return std::isnan(x);
}
inline bool isinf(float x) {
  return std::isinf(x);
}
inline bool isfinite(float x) {
  return std::isfinite(x);
}
inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}
// The number where one of two is none.
template <typename T>
T max(T a, T b) {
  return a != a ? b : (a < b ? b : a);
}
template <typename T>
T min(T a, T b) {
  return a != a ? b : (b < a ? b : a);
}
template <typename T>
T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
template <typename T>
T select(T no, T yes, bool which) {
  return which ? yes : no;
}
template <typename T>
T abs(T x) {
  return x < T(0) ? T(-x) : x;
}
inline uint popcount(uint x) {
  return static_cast<uint>(std::popcount(x));
}

template <typename T>
T simd_sum(T x) {
  return emulator::fold("simd_sum", x, [](T a, T b) { return a + b; });
}
template <typename T>
T simd_product(T x) {
  return emulator::fold("simd_product", x, [](T a, T b) { return a * b; });
}
template <typename T>
T simd_max(T x) {
  return emulator::fold("simd_max", x, [](T a, T b) { return metal::max(a, b); });
}
template <typename T>
T simd_min(T x) {
  return emulator::fold("simd_min", x, [](T a, T b) { return metal::min(a, b); });
}
inline bool simd_any(bool x) {
  return emulator::fold("simd_any", x, [](bool a, bool b) { return a || b; });
}
inline bool simd_all(bool x) {
  return emulator::fold("simd_all", x, [](bool a, bool b) { return a && b; });
}
template <typename T>
T simd_shuffle(T x, ushort lane) {
  return emulator::from_lane("simd_shuffle", x, lane);
}
template <typename T>
T simd_broadcast(T x, ushort lane) {
  return emulator::from_lane("simd_broadcast", x, lane);
}
template <typename T>
T simd_broadcast_first(T x) {
  auto lanes = emulator::exchange("simd_broadcast_first", x);
  return lanes.values[std::countr_zero(lanes.active)];
}
template <typename T>
T simd_shuffle_xor(T x, ushort mask) {
  return emulator::from_lane("simd_shuffle_xor", x, emulator::group.current % 32 ^ mask);
}
template <typename T>
T simd_shuffle_down(T x, ushort delta) {
  return emulator::from_lane("simd_shuffle_down", x, emulator::group.current % 32 + delta);
}
template <typename T>
T simd_shuffle_up(T x, ushort delta) {
  return emulator::from_lane("simd_shuffle_up", x, emulator::group.current % 32 - delta);
}
template <typename T>
T simd_prefix_inclusive_sum(T x) {
  auto lanes = emulator::exchange("simd_prefix_inclusive_sum", x);
  T sum{};
  for (unsigned i = 0; i <= emulator::group.current % 32; ++i) {
    sum = lanes.has(i) ? T(sum + lanes.values[i]) : sum;
  }
  return sum;
}
template <typename T>
T simd_prefix_exclusive_sum(T x) {
  return simd_prefix_inclusive_sum(x) - x;
}

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline void threadgroup_barrier(mem_flags) {
  emulator::group.barrier();
}
inline void simdgroup_barrier(mem_flags) {
  emulator::exchange("simdgroup_barrier", 0);
}

enum memory_order { memory_order_relaxed };
template <typename T>
struct atomic {
  T value;
};
using atomic_uint = atomic<uint>;
using atomic_int = atomic<int>;
template <typename T>
T atomic_load_explicit(const atomic<T>* a, memory_order) {
  return a->value;
}
template <typename T>
void atomic_store_explicit(atomic<T>* a, std::type_identity_t<T> x, memory_order) {
  a->value = x;
}
#define EMULATOR_ATOMIC(name, expression)                                             \
  template <typename T>                                                               \
  T atomic_##name##_explicit(atomic<T>* a, std::type_identity_t<T> x, memory_order) { \
    T old = a->value;                                                                 \
    a->value = T(expression);                                                         \
    return old;                                                                       \
  }
EMULATOR_ATOMIC(fetch_add, old + x)
EMULATOR_ATOMIC(fetch_sub, old - x)
EMULATOR_ATOMIC(fetch_max, metal::max(old, x))
EMULATOR_ATOMIC(fetch_min, metal::min(old, x))
EMULATOR_ATOMIC(fetch_or, old | x)
EMULATOR_ATOMIC(fetch_and, old& x)
EMULATOR_ATOMIC(exchange, x)
#undef EMULATOR_ATOMIC

} // namespace metal

namespace emulator {

// What the attributes of a thread say.
struct Thread {
  metal::uint3 dispatch_threads_per_threadgroup, grid_origin, grid_size, thread_position_in_grid,
      thread_position_in_threadgroup, threadgroup_position_in_grid, threadgroups_per_grid, threads_per_grid,
      threads_per_threadgroup;
  uint dispatch_quadgroups_per_threadgroup, dispatch_simdgroups_per_threadgroup, quadgroup_index_in_threadgroup,
      quadgroups_per_threadgroup, simdgroup_index_in_threadgroup, simdgroups_per_threadgroup, thread_execution_width,
      thread_index_in_quadgroup, thread_index_in_simdgroup, thread_index_in_threadgroup, threads_per_simdgroup;
};

// Memory that ends where the next page can't be touched.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t whole = (bytes + page - 1) / page * page;
    auto* all =
        static_cast<unsigned char*>(mmap(nullptr, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (all == MAP_FAILED || (whole > 0 && mprotect(all + page, whole, PROT_READ | PROT_WRITE) != 0)) {
      fail("no memory");
    }
    first_ = all + page + whole - bytes;
  }
  unsigned char* data() {
    return first_;
  }
  std::size_t size() const {
    return bytes_;
  }

 private:
  std::size_t bytes_;
  unsigned char* first_;
};

struct Input {
  std::vector<int> shape;
  std::vector<std::int64_t> strides;
  Buffer data;
  int ndim;
};

// One launch, read from a file.
class Launch {
 public:
  Launch(std::FILE* file, int inputs, int outputs) {
    read(file, grid_, sizeof(grid_));
    read(file, nominal_, sizeof(nominal_));
    for (int i = 0; i < inputs; ++i) {
      auto ndim = number(file);
      std::vector<int> shape(ndim);
      std::vector<std::int64_t> strides(ndim);
      read(file, shape.data(), 4 * ndim);
      read(file, strides.data(), 8 * ndim);
      Buffer data(number(file));
      read(file, data.data(), data.size());
      inputs_.push_back({std::move(shape), std::move(strides), data, static_cast<int>(ndim)});
    }
    for (int i = 0; i < outputs; ++i) {
      outputs_.emplace_back(number(file));
      std::vector<unsigned char> init(number(file));
      read(file, init.data(), init.size());
      inits_.push_back(std::move(init));
    }
  }

  const Input& input(int i) const {
    return inputs_[i];
  }
  template <typename T>
  const T* in(int i) {
    return reinterpret_cast<const T*>(inputs_[i].data.data());
  }
  template <typename T>
  T* out(int i) {
    return reinterpret_cast<T*>(outputs_[i].data());
  }

  // Runs the kernel in both orders, and writes the outputs. With `ordered`, results of both must be the same bytes.
  template <typename F>
  void run(F&& kernel, bool ordered, std::FILE* file) {
    std::vector<std::vector<unsigned char>> first;
    for (bool backwards : {false, true}) {
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        std::memset(outputs_[i].data(), backwards ? 0x5a : 0xcd, outputs_[i].size());
        std::memcpy(outputs_[i].data(), inits_[i].data(), inits_[i].size());
      }
      dispatch(kernel, backwards);
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        auto& out = outputs_[i];
        if (!backwards) {
          first.emplace_back(out.data(), out.data() + out.size());
        } else if (ordered && std::memcmp(first[i].data(), out.data(), out.size()) != 0) {
          fail("output " + std::to_string(i) + " depends on the order of threads, or has elements that nobody wrote");
        }
      }
    }
    for (auto& out : outputs_) {
      std::fwrite(out.data(), 1, out.size(), file);
    }
  }

 private:
  static void read(std::FILE* file, void* to, std::size_t bytes) {
    if (bytes > 0 && std::fread(to, 1, bytes, file) != bytes) {
      fail("the launch file is too short");
    }
  }
  static std::uint64_t number(std::FILE* file) {
    std::uint64_t n = 0;
    read(file, &n, 8);
    return n;
  }

  template <typename F>
  void dispatch(F& kernel, bool backwards) {
    // As MLX does: a group is not larger than the grid.
    std::array<uint, 3> nominal, groups;
    for (int d = 0; d < 3; ++d) {
      nominal[d] = std::min(static_cast<uint>(nominal_[d]), static_cast<uint>(grid_[d]));
      groups[d] = (grid_[d] + nominal[d] - 1) / nominal[d];
    }
    uint full = nominal[0] * nominal[1] * nominal[2];
    for (uint gz = 0; gz < groups[2]; ++gz) {
      for (uint gy = 0; gy < groups[1]; ++gy) {
        for (uint gx = 0; gx < groups[0]; ++gx) {
          std::array<uint, 3> at = {gx, gy, gz}, size;
          for (int d = 0; d < 3; ++d) {
            size[d] = std::min(nominal[d], grid_[d] - at[d] * nominal[d]);
          }
          uint count = size[0] * size[1] * size[2];
          group.body = [&, at, size, count](unsigned i) {
            std::array<uint, 3> local = {i % size[0], i / size[0] % size[1], i / (size[0] * size[1])};
            Thread t{};
            for (int d = 0; d < 3; ++d) {
              t.thread_position_in_threadgroup[d] = local[d];
              t.thread_position_in_grid[d] = at[d] * nominal[d] + local[d];
              t.threadgroup_position_in_grid[d] = at[d];
              t.threads_per_threadgroup[d] = size[d];
              t.dispatch_threads_per_threadgroup[d] = nominal[d];
              t.threadgroups_per_grid[d] = groups[d];
              t.threads_per_grid[d] = t.grid_size[d] = static_cast<uint>(grid_[d]);
            }
            t.thread_index_in_threadgroup = i;
            t.thread_index_in_simdgroup = i % 32;
            t.simdgroup_index_in_threadgroup = i / 32;
            t.simdgroups_per_threadgroup = (count + 31) / 32;
            t.dispatch_simdgroups_per_threadgroup = (full + 31) / 32;
            t.thread_execution_width = t.threads_per_simdgroup = 32;
            t.thread_index_in_quadgroup = i % 4;
            t.quadgroup_index_in_threadgroup = i / 4;
            t.quadgroups_per_threadgroup = (count + 3) / 4;
            t.dispatch_quadgroups_per_threadgroup = (full + 3) / 4;
            kernel(t);
          };
          group.run(count, backwards);
        }
      }
    }
  }

  std::int32_t grid_[3];
  std::int32_t nominal_[3];
  std::vector<Input> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<std::vector<unsigned char>> inits_;
};

} // namespace emulator

using namespace metal;

// The address spaces, last, since they are words that host headers use. `threadgroup` is rewritten before: see emulator.rs.
#define device
#define constant
#define thread
#define kernel

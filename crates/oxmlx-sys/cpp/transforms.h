// MLX's transforms over closures that are Rust: differentiation, vectorisation, compilation, export.
#pragma once

#include "array_handle.h"

#include "mlx/export.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace oxmlx::transforms {

struct Closure;
struct NamedClosure;
struct Rules;
struct TwoLists;
struct Mapped;

using Handle = mlx::core::array;
using Handles = rust::Slice<const Handle>;

// Throws for a graph that is too deep for MLX's recursive walks.
void check_depth(const std::vector<Handle>& outputs);

TwoLists vjp(rust::Box<Closure> f, Handles primals, Handles cotangents);
TwoLists jvp(rust::Box<Closure> f, Handles primals, Handles tangents);
TwoLists value_and_grad(rust::Box<Closure> f, rust::Slice<const std::int32_t> argnums, Handles inputs);
// An axis of -1 is not mapped.
rust::Vec<Handle> vmap(
    rust::Box<Closure> f,
    rust::Slice<const std::int32_t> in_axes,
    rust::Slice<const std::int32_t> out_axes,
    Handles inputs);
rust::Vec<Handle> checkpoint(rust::Box<Closure> f, Handles inputs);
rust::Vec<Handle> custom_function(rust::Box<Closure> f, rust::Box<Rules> rules, Handles inputs);

// A compiled function under an id that no other one ever has. Erased from the cache of every thread with it.
class Compiled {
 public:
  Compiled(rust::Box<Closure> f, std::uint64_t id, bool shapeless);
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  rust::Vec<Handle> call(Handles inputs) const;

 private:
  using Function = std::function<std::vector<Handle>(const std::vector<Handle>&)>;

  // By device: MLX's caches tell apart the default device's streams alone, and a scope's device may be another.
  struct OfDevice {
    std::uint64_t id;
    Function function;
  };

  Function plain_;
  std::array<OfDevice, 2> functions_;
  // Whether a call is under way.
  mutable bool running_ = false;
};

std::unique_ptr<Compiled> compile(rust::Box<Closure> f, std::uint64_t id, bool shapeless);
void clear_compile_caches();

class Exporter {
 public:
  explicit Exporter(mlx::core::FunctionExporter&& exporter) : exporter_(std::move(exporter)) {}
  void add(Handles args, rust::Slice<const rust::Str> names, Handles values);
  void close();

 private:
  mlx::core::FunctionExporter exporter_;
};

std::unique_ptr<Exporter> exporter(rust::Str file, rust::Box<NamedClosure> f, bool shapeless, rust::Str metadata);

class Imported {
 public:
  explicit Imported(mlx::core::ImportedFunction&& function) : function_(std::move(function)) {}
  rust::Vec<Handle> call(Handles args, rust::Slice<const rust::Str> names, Handles values) const;
  rust::String metadata() const;

 private:
  mlx::core::ImportedFunction function_;
};

std::unique_ptr<Imported> import_function(rust::Str file);

} // namespace oxmlx::transforms

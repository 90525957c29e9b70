#include "oxmlx-sys/src/transforms.rs.h"

#include "closure_call.h"
#include "rules.h"
#include "runtime.h"

#include "mlx/compile.h"
#include "mlx/compile_impl.h"
#include "mlx/export_impl.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace mx = mlx::core;

namespace oxmlx::transforms {

namespace {

using Arrays = std::vector<mx::array>;
using Function = std::function<Arrays(const Arrays&)>;

Arrays to_arrays(Handles x) {
  return {x.begin(), x.end()};
}

Arrays to_arrays(const rust::Vec<mx::array>& x) {
  return {x.begin(), x.end()};
}

Handles slice(const Arrays& x) {
  return {x.data(), x.size()};
}

rust::Vec<mx::array> from_arrays(Arrays&& x) {
  rust::Vec<mx::array> out;
  out.reserve(x.size());
  for (auto& a : x) {
    out.push_back(std::move(a));
  }
  return out;
}

TwoLists from_pair(std::pair<Arrays, Arrays>&& x) {
  return {from_arrays(std::move(x.first)), from_arrays(std::move(x.second))};
}

std::vector<int> to_ints(rust::Slice<const std::int32_t> x) {
  return {x.begin(), x.end()};
}

Function function_of(rust::Box<Closure> f) {
  auto shared = std::make_shared<rust::Box<Closure>>(std::move(f));
  return [shared](const Arrays& inputs) {
    auto outputs = closure_call([&] { return to_arrays((*shared)->apply(slice(inputs))); });
    // Outside a trace nothing walks it: a custom function is called here for its values.
    if (inputs.empty() || std::any_of(inputs.begin(), inputs.end(), [](const auto& x) { return x.is_tracer(); })) {
      check_depth(outputs);
    }
    return outputs;
  };
}

// The function, which notes what shapes it gave. MLX reads the first output's stream without asking whether there is one.
Function noting_shapes(Function f, std::shared_ptr<rules::Shapes> shapes) {
  return [f = std::move(f), shapes = std::move(shapes)](const Arrays& inputs) {
    auto outputs = f(inputs);
    if (outputs.empty()) {
      throw std::invalid_argument("[custom_function] the function gave no array");
    }
    *shapes = rules::shapes_of(outputs);
    return outputs;
  };
}

std::unordered_map<std::string, mx::array> to_kwargs(rust::Slice<const rust::Str> names, Handles values) {
  std::unordered_map<std::string, mx::array> out;
  for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) {
    out.insert_or_assign(std::string(names[i]), values[i]);
  }
  return out;
}

// The compile caches of all threads that ever compiled. MLX's own reference to a cache goes with its thread; this one keeps it until
// somebody who holds the lock lets it go, so that no thread frees arrays on its way out beside those who use MLX.
std::vector<std::shared_ptr<mx::detail::CompileCache>>& caches() {
  static auto* all = new std::vector<std::shared_ptr<mx::detail::CompileCache>>();
  return *all;
}

void register_thread() {
  thread_local bool registered = false;
  if (registered) {
    return;
  }
  auto& all = caches();
  std::erase_if(all, [](const auto& cache) { return cache.use_count() == 1; });
  if (auto cache = mx::detail::compile_cache().lock()) {
    all.push_back(std::move(cache));
  }
  registered = true;
}

bool reduces(const mx::array& x) {
  static const std::unordered_set<std::string> reductions = {"Sum", "Prod", "Min", "Max", "And", "Or"};
  return x.has_primitive() && x.inputs().size() == 1 && reductions.contains(x.primitive().name());
}

// What a reduction over axes that are all of length 1 gives, or one over no elements; any other array as it is. MLX builds none, but in a
// shapeless trace, and crashes when it runs one.
mx::array unreduced(mx::array x) {
  while (reduces(x) && x.shape() == x.inputs()[0].shape()) {
    x = mx::astype(x.inputs()[0], x.dtype());
  }
  if (reduces(x) && x.size() > 0 && x.inputs()[0].size() == 0) {
    std::string name = x.primitive().name();
    if (name == "Min" || name == "Max") {
      throw std::invalid_argument(
          "[" + name + "] no elements to reduce in an array of shape " + rules::text(x.inputs()[0].shape()));
    }
    return name == "Sum" || name == "Or" ? mx::zeros(x.shape(), x.dtype()) : mx::ones(x.shape(), x.dtype());
  }
  return x;
}

// Takes the reductions that reduce nothing out of a graph, down to the arrays `from` which it was built.
void leave_out_reductions_of_nothing(Arrays& outputs, const Arrays& from) {
  std::vector<mx::array> open;
  std::unordered_set<std::uintptr_t> seen;
  for (const auto& x : from) {
    seen.insert(x.id());
  }
  const auto visit = [&](mx::array& x) {
    if (seen.contains(x.id())) {
      return;
    }
    x = unreduced(x);
    if (seen.insert(x.id()).second) {
      open.push_back(x);
    }
  };
  std::for_each(outputs.begin(), outputs.end(), visit);
  while (!open.empty()) {
    auto x = std::move(open.back());
    open.pop_back();
    std::for_each(x.inputs().begin(), x.inputs().end(), visit);
  }
}

Function shapeless_function_of(rust::Box<Closure> f) {
  return [function = function_of(std::move(f))](const Arrays& inputs) {
    auto outputs = function(inputs);
    leave_out_reductions_of_nothing(outputs, inputs);
    return outputs;
  };
}

} // namespace

// MLX walks what a closure built by recursion; src/stack.rs has room for so many nodes.
void check_depth(const std::vector<Handle>& outputs) {
  std::unordered_map<std::uintptr_t, std::size_t> depths;
  std::vector<std::pair<const mx::array*, std::size_t>> walk;
  auto enter = [&](const mx::array& a) {
    if (!a.inputs().empty() && depths.try_emplace(a.id(), 0).second) {
      walk.emplace_back(&a, 0);
    }
  };
  const auto limit = max_depth();
  for (const auto& output : outputs) {
    enter(output);
    while (!walk.empty()) {
      auto& [a, next] = walk.back();
      if (next < a->inputs().size()) {
        enter(a->inputs()[next++]);
        continue;
      }
      std::size_t deepest = 0;
      for (const auto& in : a->inputs()) {
        auto it = depths.find(in.id());
        deepest = std::max(deepest, it == depths.end() ? 0 : it->second);
      }
      depths[a->id()] = deepest + 1;
      if (deepest + 1 > limit) {
        throw std::invalid_argument(
            "[transforms] the closure's graph is more than " + std::to_string(limit) +
            " nodes deep: evaluate some of it on the way");
      }
      walk.pop_back();
    }
  }
}

TwoLists vjp(rust::Box<Closure> f, Handles primals, Handles cotangents) {
  return from_pair(mx::vjp(function_of(std::move(f)), to_arrays(primals), to_arrays(cotangents)));
}

TwoLists jvp(rust::Box<Closure> f, Handles primals, Handles tangents) {
  return from_pair(mx::jvp(function_of(std::move(f)), to_arrays(primals), to_arrays(tangents)));
}

TwoLists value_and_grad(rust::Box<Closure> f, rust::Slice<const std::int32_t> argnums, Handles inputs) {
  return from_pair(mx::value_and_grad(function_of(std::move(f)), to_ints(argnums))(to_arrays(inputs)));
}

rust::Vec<Handle> vmap(
    rust::Box<Closure> f,
    rust::Slice<const std::int32_t> in_axes,
    rust::Slice<const std::int32_t> out_axes,
    Handles inputs) {
  auto function = mx::vmap(function_of(std::move(f)), to_ints(in_axes), to_ints(out_axes));
  return from_arrays(function(to_arrays(inputs)));
}

rust::Vec<Handle> checkpoint(rust::Box<Closure> f, Handles inputs) {
  auto shapes = std::make_shared<rules::Shapes>();
  return from_arrays(mx::checkpoint(noting_shapes(function_of(std::move(f)), shapes))(to_arrays(inputs)));
}

rust::Vec<Handle> custom_function(rust::Box<Closure> f, rust::Box<Rules> rules, Handles inputs) {
  auto shared = std::make_shared<rust::Box<Rules>>(std::move(rules));
  // Of the outputs: what the rules must give.
  auto shapes = std::make_shared<rules::Shapes>();
  std::optional<std::function<Arrays(const Arrays&, const Arrays&, const Arrays&)>> vjp;
  std::optional<std::function<Arrays(const Arrays&, const Arrays&, const std::vector<int>&)>> jvp;
  std::optional<std::function<std::pair<Arrays, std::vector<int>>(const Arrays&, const std::vector<int>&)>> vmap;
  if ((*shared)->has_vjp()) {
    vjp = [shared](const Arrays& primals, const Arrays& cotangents, const Arrays& outputs) {
      auto all =
          closure_call([&] { return to_arrays((*shared)->vjp(slice(primals), slice(cotangents), slice(outputs))); });
      return rules::fitting("vjp", all, rules::shapes_of(primals));
    };
  }
  if ((*shared)->has_jvp()) {
    jvp = [shared, shapes](const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) {
      auto all = closure_call(
          [&] { return to_arrays((*shared)->jvp(slice(primals), slice(tangents), {argnums.data(), argnums.size()})); });
      return rules::fitting("jvp", all, *shapes);
    };
  }
  if ((*shared)->has_vmap()) {
    vmap = [shared, shapes](const Arrays& inputs, const std::vector<int>& axes) {
      auto all = closure_call([&] {
        auto mapped = (*shared)->vmap(slice(inputs), {axes.data(), axes.size()});
        return std::pair(to_arrays(mapped.arrays), std::vector<int>(mapped.axes.begin(), mapped.axes.end()));
      });
      return rules::mapped(all, *shapes, inputs, axes);
    };
  }
  auto function = noting_shapes(function_of(std::move(f)), shapes);
  return from_arrays(mx::custom_function(function, vjp, jvp, vmap)(to_arrays(inputs)));
}

Compiled::Compiled(rust::Box<Closure> f, std::uint64_t id, bool shapeless)
    : plain_(shapeless ? shapeless_function_of(std::move(f)) : function_of(std::move(f))) {
  for (std::uint64_t device = 0; device < functions_.size(); ++device) {
    auto id_there = functions_.size() * id + device;
    functions_[device] = {id_there, mx::detail::compile(plain_, id_there, shapeless)};
  }
}

Compiled::~Compiled() {
  try {
    for (const auto& cache : caches()) {
      for (const auto& [id, _] : functions_) {
        mx::detail::compile_erase(cache, id);
      }
    }
  } catch (...) {
    // Erasing only takes a mutex and frees; an entry that stays is never found again, its id being used up.
  }
}

rust::Vec<Handle> Compiled::call(Handles inputs) const {
  register_thread();
  if (running_) {
    // The closure calls its own compiled function. MLX would add a trace to the list that the one under way is being written into.
    return from_arrays(plain_(to_arrays(inputs)));
  }
  struct Running {
    bool& flag;
    ~Running() {
      flag = false;
    }
  } running{running_};
  running_ = true;
  const auto& [id, function] = functions_[runtime::current_is_gpu()];
  try {
    return from_arrays(function(to_arrays(inputs)));
  } catch (...) {
    // A trace that failed half-way leaves an entry that would be taken for a finished one.
    mx::detail::compile_erase(mx::detail::compile_cache(), id);
    throw;
  }
}

std::unique_ptr<Compiled> compile(rust::Box<Closure> f, std::uint64_t id, bool shapeless) {
  return std::make_unique<Compiled>(std::move(f), id, shapeless);
}

void clear_compile_caches() {
  for (const auto& cache : caches()) {
    mx::detail::compile_clear_cache(cache);
  }
}

std::unique_ptr<Exporter> exporter(rust::Str file, rust::Box<NamedClosure> f, bool shapeless, rust::Str metadata) {
  auto shared = std::make_shared<rust::Box<NamedClosure>>(std::move(f));
  std::function<Arrays(const mx::Args&, const mx::Kwargs&)> function =
      [shared](const mx::Args& args, const mx::Kwargs& kwargs) {
        rust::Vec<rust::String> names;
        Arrays values;
        for (const auto& [name, value] : kwargs) {
          names.push_back(name);
          values.push_back(value);
        }
        auto outputs =
            closure_call([&] { return to_arrays((*shared)->apply(slice(args), std::move(names), slice(values))); });
        check_depth(outputs);
        return outputs;
      };
  return std::make_unique<Exporter>(mx::exporter(std::string(file), function, shapeless, std::string(metadata)));
}

void Exporter::add(Handles args, rust::Slice<const rust::Str> names, Handles values) {
  exporter_(to_arrays(args), to_kwargs(names, values));
}

void Exporter::close() {
  exporter_.close();
}

rust::Vec<Handle> Imported::call(Handles args, rust::Slice<const rust::Str> names, Handles values) const {
  auto inputs = to_arrays(args);
  auto outputs = function_(inputs, to_kwargs(names, values));
  inputs.insert(inputs.end(), values.begin(), values.end());
  // What was traced without shapes meets others here.
  leave_out_reductions_of_nothing(outputs, inputs);
  return from_arrays(std::move(outputs));
}

rust::String Imported::metadata() const {
  return function_.metadata();
}

std::unique_ptr<Imported> import_function(rust::Str file) {
  return std::make_unique<Imported>(mx::import_function(std::string(file)));
}

} // namespace oxmlx::transforms

#include "oxmlx-sys/src/export_steps.rs.h"

#include "convert.h"
#include "transforms.h"

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace oxmlx::export_steps {

namespace {

using Arrays = std::vector<mx::array>;
using Tensors = std::vector<std::tuple<std::string, mx::Shape, mx::Dtype>>;

template <typename T>
const T* field(const mx::ExportCallbackInput& step, const char* name) {
  auto found = step.find(name);
  return found == step.end() ? nullptr : std::get_if<T>(&found->second);
}

rust::Vec<Tensor> tensors(const Tensors* x) {
  rust::Vec<Tensor> out;
  if (x != nullptr) {
    for (const auto& [name, shape, dtype] : *x) {
      out.push_back({name, from_shape(shape), static_cast<std::uint8_t>(dtype.val())});
    }
  }
  return out;
}

// One list of whole numbers and one of reals hold whatever a primitive's state can be; the kind says how to read them.
Argument argument(const mx::StateT& state) {
  Argument out{ArgumentKind::Ints, {}, {}, {}};
  std::visit(
      [&out](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          out.kind = ArgumentKind::Bool;
          out.ints.push_back(value);
        } else if constexpr (std::is_integral_v<T>) {
          out.kind = ArgumentKind::Int;
          out.ints.push_back(static_cast<std::int64_t>(value));
        } else if constexpr (std::is_floating_point_v<T>) {
          out.kind = ArgumentKind::Float;
          out.reals.push_back(value);
        } else if constexpr (std::is_same_v<T, mx::Dtype>) {
          out.kind = ArgumentKind::Dtype;
          out.ints.push_back(static_cast<std::int64_t>(value.val()));
        } else if constexpr (std::is_same_v<T, std::string>) {
          out.kind = ArgumentKind::Text;
          out.text = value;
        } else if constexpr (std::is_same_v<T, std::optional<float>>) {
          out.kind = ArgumentKind::OptionalFloat;
          if (value) {
            out.reals.push_back(*value);
          }
        } else if constexpr (std::is_same_v<T, std::vector<std::tuple<bool, bool, bool>>>) {
          out.kind = ArgumentKind::Flags;
          for (const auto& [a, b, c] : value) {
            out.ints.push_back(a);
            out.ints.push_back(b);
            out.ints.push_back(c);
          }
        } else if constexpr (std::is_same_v<T, std::vector<std::variant<bool, int, float>>>) {
          out.kind = ArgumentKind::Numbers;
          for (const auto& one : value) {
            std::visit([&out](auto number) { out.reals.push_back(static_cast<double>(number)); }, one);
          }
        } else {
          for (auto one : value) {
            out.ints.push_back(static_cast<std::int64_t>(one));
          }
        }
      },
      state);
  return out;
}

Step step_of(const mx::ExportCallbackInput& from) {
  Step step{{}, {}, tensors(field<Tensors>(from, "inputs")), tensors(field<Tensors>(from, "outputs")), {}, {}, {}, {}};
  if (const auto* kind = field<std::string>(from, "type")) {
    step.kind = *kind;
  }
  if (const auto* name = field<std::string>(from, "name")) {
    step.name = *name;
  }
  if (const auto* pairs = field<std::vector<std::pair<std::string, std::string>>>(from, "keywords")) {
    for (const auto& [key, name] : *pairs) {
      step.names.push_back(key);
      step.keywords.push_back(name);
    }
  }
  if (const auto* pairs = field<std::vector<std::pair<std::string, mx::array>>>(from, "constants")) {
    for (const auto& [name, value] : *pairs) {
      step.names.push_back(name);
      step.constants.push_back(value);
    }
  }
  if (const auto* states = field<std::vector<mx::StateT>>(from, "arguments")) {
    for (const auto& state : *states) {
      step.arguments.push_back(argument(state));
    }
  }
  return step;
}

} // namespace

rust::Vec<Step>
steps(rust::Box<StepsClosure> f, Handles args, rust::Slice<const rust::Str> names, Handles values, bool shapeless) {
  auto shared = std::make_shared<rust::Box<StepsClosure>>(std::move(f));
  std::function<Arrays(const mx::Args&, const mx::Kwargs&)> function =
      [shared](const mx::Args& given, const mx::Kwargs& named) -> Arrays {
    rust::Vec<rust::String> keys;
    Arrays named_values;
    for (const auto& [name, value] : named) {
      keys.push_back(name);
      named_values.push_back(value);
    }
    try {
      auto out =
          (*shared)->apply({given.data(), given.size()}, std::move(keys), {named_values.data(), named_values.size()});
      Arrays outputs(out.begin(), out.end());
      transforms::check_depth(outputs);
      return outputs;
    } catch (const rust::Error& e) {
      throw ClosureFailed(e.what());
    }
  };
  rust::Vec<Step> out;
  mx::export_function(
      [&out](const mx::ExportCallbackInput& step) { out.push_back(step_of(step)); },
      function,
      {args.begin(), args.end()},
      to_map<mx::array>(names, values),
      shapeless);
  return out;
}

} // namespace oxmlx::export_steps

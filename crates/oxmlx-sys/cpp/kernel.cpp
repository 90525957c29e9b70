#include "oxmlx-sys/src/kernel.rs.h"

#include "closure_call.h"
#include "oxmlx-sys/src/evaluation.rs.h"
#include "oxmlx-sys/src/gpu_kernel.rs.h"
#include "rules.h"
#include "runtime.h"
#include "survey.h"

#include "mlx/backend/cpu/encoder.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace mx = mlx::core;

namespace oxmlx::kernel {

namespace {

std::vector<mx::array> to_vector(const rust::Vec<mx::array>& arrays) {
  return {arrays.begin(), arrays.end()};
}

// Each shape comes as its number of dimensions, then the dimensions.
template <typename Flat>
std::vector<mx::Shape> unflatten(const Flat& flat) {
  std::vector<mx::Shape> shapes;
  for (std::size_t i = 0; i < flat.size();) {
    std::size_t ndim = flat[i++];
    shapes.emplace_back(flat.begin() + i, flat.begin() + i + ndim);
    i += ndim;
  }
  return shapes;
}

// Whether an input of a node with this many outputs is held by the node alone, and its memory by the input alone. Each output holds the
// node's inputs, so that MLX's own `is_donatable` says no for every node with several. The count is the handle's, which is one shared
// pointer (array_handle.h).
bool only_held_by(const mx::array& in, std::size_t outputs) {
  const auto& handle = reinterpret_cast<const std::shared_ptr<void>&>(in);
  const auto& data = in.data_shared_ptr();
  return handle.use_count() == static_cast<long>(outputs) && data && data.use_count() == 1 && data->is_owned();
}

class RustKernel : public mx::Primitive {
 public:
  RustKernel(mx::Stream stream, std::shared_ptr<rust::Box<Node>> node)
      : mx::Primitive(stream), node_(std::move(node)), name_(std::string((*node_)->name())) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::vector<mx::array> ins;
    ins.reserve(inputs.size());
    for (const auto& in : inputs) {
      // An empty array may have no buffer at all.
      ins.push_back(in.data_shared_ptr() ? mx::array::unsafe_weak_copy(in) : in);
    }
    std::vector<mx::array> outs;
    outs.reserve(outputs.size());
    rust::Vec<bool> reused;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      reused.push_back(place(inputs, outputs[i], (*node_)->in_place_of(i), outputs.size()));
      outs.push_back(mx::array::unsafe_weak_copy(outputs[i]));
    }
    auto& encoder = mx::cpu::get_command_encoder(stream());
    auto surveyed = evaluation::ticket_of(outputs.at(0));
    auto ticket = surveyed ? *surveyed : evaluation::Ticket::alone();
    bool alone = !surveyed;
    encoder.dispatch(
        [node = node_, ins = std::move(ins), outs = std::move(outs), reused = std::move(reused), ticket, alone]() {
          (*node)->run(
              {ins.data(), ins.size()}, {outs.data(), outs.size()}, {reused.data(), reused.size()}, ticket.fault());
          auto guilt = alone ? ticket.fault().guilt() : nullptr;
          ticket.done();
          if (guilt) {
            // An evaluation that MLX began for itself: it keeps the error on the stream and hands it to who waits.
            throw std::runtime_error(std::string((*guilt)->text()));
          }
        });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw Refused("kernel " + name_ + " has no GPU body");
  }

  std::vector<mx::array> vjp(
      const std::vector<mx::array>& primals,
      const std::vector<mx::array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<mx::array>& outputs) override {
    if (!(*node_)->has_vjp()) {
      return mx::vjp(fallback_of(primals, argnums), chosen(primals, argnums), cotangents).second;
    }
    auto all =
        closure_call([&] { return to_vector((*node_)->vjp(slice(primals), slice(cotangents), slice(outputs))); });
    rules::same_number("vjp", all.size(), primals.size());
    return rules::fitting("vjp", chosen(all, argnums), rules::shapes_of(chosen(primals, argnums)));
  }

  std::vector<mx::array> jvp(
      const std::vector<mx::array>& primals,
      const std::vector<mx::array>& tangents,
      const std::vector<int>& argnums) override {
    auto outputs = mx::jvp(fallback_of(primals, argnums), chosen(primals, argnums), tangents).second;
    return rules::fitting("fallback", outputs, output_shapes(primals));
  }

  std::pair<std::vector<mx::array>, std::vector<int>> vmap(
      const std::vector<mx::array>& inputs,
      const std::vector<int>& axes) override {
    if ((*node_)->has_vmap()) {
      auto given = closure_call([&] { return (*node_)->vmap(slice(inputs), {axes.data(), axes.size()}); });
      return rules::mapped(
          {to_vector(given.arrays), {given.axes.begin(), given.axes.end()}}, shapes_of_one(inputs, axes), inputs, axes);
    }
    auto outputs = mx::vmap(fallback(), axes)(inputs);
    rules::same_number("fallback", outputs.size(), (*node_)->output_dtypes(slice(inputs)).size());
    std::vector<int> out_axes(outputs.size(), 0);
    return {std::move(outputs), std::move(out_axes)};
  }

  std::vector<mx::Shape> output_shapes(const std::vector<mx::array>& inputs) override {
    return closure_call([&] { return unflatten((*node_)->output_shapes(slice(inputs))); });
  }

  const char* name() const override {
    return name_.c_str();
  }

 protected:
  static rust::Slice<const mx::array> slice(const std::vector<mx::array>& arrays) {
    return {arrays.data(), arrays.size()};
  }

  std::function<std::vector<mx::array>(const std::vector<mx::array>&)> fallback() const {
    if (!(*node_)->has_fallback()) {
      throw Refused(
          "kernel " + name_ +
          " can't be differentiated or vectorised: it has neither a rule nor a fallback of MLX operations");
    }
    return [node = node_](const std::vector<mx::array>& inputs) {
      return closure_call([&] { return to_vector((*node)->fallback({inputs.data(), inputs.size()})); });
    };
  }

  // The outputs' shapes of one element of the batch.
  std::vector<mx::Shape> shapes_of_one(const std::vector<mx::array>& inputs, const std::vector<int>& axes) {
    std::vector<mx::array> ones;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      auto shape = inputs[i].shape();
      if (axes.at(i) >= 0) {
        shape.erase(shape.begin() + axes[i]);
      }
      ones.emplace_back(std::move(shape), inputs[i].dtype(), nullptr, std::vector<mx::array>{});
    }
    return output_shapes(ones);
  }

  static std::vector<mx::array> chosen(const std::vector<mx::array>& all, const std::vector<int>& argnums) {
    std::vector<mx::array> some;
    for (int i : argnums) {
      some.push_back(all.at(i));
    }
    return some;
  }

  // The fallback as a function of the inputs that a derivative is wanted of: packed weights have none, and MLX throws for them.
  std::function<std::vector<mx::array>(const std::vector<mx::array>&)> fallback_of(
      const std::vector<mx::array>& primals,
      const std::vector<int>& argnums) const {
    return [function = fallback(), primals, argnums](const std::vector<mx::array>& given) {
      auto inputs = primals;
      for (std::size_t j = 0; j < argnums.size(); ++j) {
        inputs.at(argnums[j]) = given[j];
      }
      return function(inputs);
    };
  }

  // Gives an output its memory: the named input's own when nobody else needs it, else a fresh buffer.
  static bool place(const std::vector<mx::array>& inputs, mx::array& out, std::int32_t in_place_of, std::size_t count) {
    if (in_place_of >= 0) {
      const auto& in = inputs.at(in_place_of);
      if (only_held_by(in, count) && in.flags().row_contiguous && in.nbytes() == out.nbytes() && in.offset() == 0) {
        out.copy_shared_buffer(in, out.strides(), out.flags(), out.size());
        return true;
      }
    }
    auto data = mx::allocator::malloc(out.nbytes());
    if (data.buffer().ptr() == nullptr) {
      throw std::bad_alloc();
    }
    out.set_data(std::move(data));
    return false;
  }

  std::shared_ptr<rust::Box<Node>> node_;
  std::string name_;
};

// A scalar as an array of one element: what a GPU source sees of it.
mx::array with_axis(const mx::array& a) {
  if (a.ndim() > 0) {
    return a;
  }
  mx::array view({1}, a.dtype(), nullptr, {});
  view.copy_shared_buffer(a, {1}, {true, true, true}, 1);
  return view;
}

// The node on a GPU. MLX's primitive is made when it runs: shapes may be others than when the node was built, in a shapeless trace.
class GpuNode : public RustKernel {
 public:
  GpuNode(mx::Stream stream, std::shared_ptr<rust::Box<Node>> node, std::shared_ptr<gpu_kernel::GpuKernel> kernel)
      : RustKernel(stream, std::move(node)), kernel_(std::move(kernel)) {}

  std::shared_ptr<mx::Primitive> primitive(
      const std::vector<mx::array>& inputs,
      const std::vector<mx::array>& outputs) {
    auto launch = closure_call([&] { return (*node_)->launch(slice(inputs), slice(outputs)); });
    return kernel_->primitive(inputs, outputs, launch, stream());
  }

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw Refused("kernel " + name_ + " was built for a GPU");
  }

  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    if (std::all_of(outputs.begin(), outputs.end(), [](const auto& out) { return out.size() == 0; })) {
      // No thread would run, and CUDA refuses such a grid.
      for (auto& out : outputs) {
        out.set_data(mx::allocator::malloc(0));
      }
      return;
    }
    auto inner = primitive(inputs, outputs);
    std::vector<mx::array> views;
    for (const auto& in : inputs) {
      views.push_back(with_axis(in));
    }
    inner->eval_gpu(views, outputs);
  }

 private:
  std::shared_ptr<gpu_kernel::GpuKernel> kernel_;
};

rust::Vec<mx::array> make_node(
    std::shared_ptr<mx::Primitive> primitive,
    rust::Slice<const mx::array> inputs,
    std::vector<mx::Shape> shapes,
    const std::vector<mx::Dtype>& dtypes) {
  std::vector<mx::array> arguments(inputs.begin(), inputs.end());
  rust::Vec<mx::array> made;
  if (shapes.size() == 1) {
    made.push_back(mx::array(std::move(shapes[0]), dtypes.at(0), std::move(primitive), std::move(arguments)));
  } else {
    for (auto& out : mx::array::make_arrays(std::move(shapes), dtypes, primitive, arguments)) {
      made.push_back(std::move(out));
    }
  }
  return made;
}

std::vector<mx::Dtype> dtypes_of(const Node& node, rust::Slice<const mx::array> inputs) {
  std::vector<mx::Dtype> dtypes;
  for (auto code : node.output_dtypes(inputs)) {
    dtypes.push_back(dtype_of(code));
  }
  return dtypes;
}

} // namespace

rust::Vec<mx::array>
apply(rust::Box<Node> node, rust::Slice<const mx::array> inputs, rust::Slice<const std::int32_t> flat_shapes) {
  auto dtypes = dtypes_of(*node, inputs);
  auto shared = std::make_shared<rust::Box<Node>>(std::move(node));
  auto primitive = std::make_shared<RustKernel>(mx::to_stream(current_stream()), std::move(shared));
  return make_node(std::move(primitive), inputs, unflatten(flat_shapes), dtypes);
}

rust::Vec<mx::array> apply_gpu(
    rust::Box<Node> node,
    const std::shared_ptr<gpu_kernel::GpuKernel>& kernel,
    rust::Slice<const mx::array> inputs,
    rust::Slice<const std::int32_t> flat_shapes,
    bool plain) {
  auto shapes = unflatten(flat_shapes);
  auto dtypes = dtypes_of(*node, inputs);
  auto shared = std::make_shared<rust::Box<Node>>(std::move(node));
  auto primitive = std::make_shared<GpuNode>(mx::to_stream(current_stream()), std::move(shared), kernel);
  if (!plain) {
    return make_node(std::move(primitive), inputs, std::move(shapes), dtypes);
  }
  // MLX's own node binds a scalar as MLX does: as a reference, which the source was not written for.
  std::vector<mx::array> with_axes;
  for (const auto& in : inputs) {
    with_axes.push_back(in.ndim() == 0 ? mx::reshape(in, {1}, current_stream()) : in);
  }
  std::vector<mx::array> outputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    outputs.emplace_back(shapes[i], dtypes.at(i), nullptr, std::vector<mx::array>{});
  }
  return make_node(
      primitive->primitive(with_axes, outputs), {with_axes.data(), with_axes.size()}, std::move(shapes), dtypes);
}

const std::uint8_t* raw_data(const mx::array& a) noexcept {
  return a.size() == 0 || a.data_shared_ptr() == nullptr ? nullptr : a.data<std::uint8_t>();
}

rust::Slice<const std::int64_t> raw_strides(const mx::array& a) noexcept {
  const auto& s = a.strides();
  return {s.data(), s.size()};
}

bool raw_row_contiguous(const mx::array& a) noexcept {
  return a.flags().row_contiguous;
}

} // namespace oxmlx::kernel

namespace oxmlx::evaluation {

bool is_rust_kernel(const mx::Primitive& primitive) {
  return typeid(primitive) == typeid(kernel::RustKernel);
}

} // namespace oxmlx::evaluation

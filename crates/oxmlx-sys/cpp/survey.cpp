#include "survey.h"

#include "guarded.h"

#include "mlx/ops.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_set>

namespace mx = mlx::core;

namespace oxmlx::evaluation {

namespace {

struct Kind {
  bool rust; // a node of ours: it tells its failure itself
  bool guarded; // may throw while its task runs
  bool allocates; // gives its output memory of its own
  bool computes; // its outputs are all that there is of it
  bool scatters; // writes its last input into a copy of its first
  bool scatters_along; // the places of that are along one axis
  bool reduces;
};

// Their outputs are views of their input.
const std::unordered_set<std::string_view> views = {
    "AsStrided",
    "Broadcast",
    "BroadcastAxes",
    "CustomTransforms",
    "Depends",
    "ExpandDims",
    "Slice",
    "Split",
    "Squeeze",
    "StopGradient",
    "Transpose",
};

// Tasks that can't throw: read in MLX's CPU backend. What is not listed is guarded.
const std::unordered_set<std::string_view> never_throw = {
    "Add",    "AsType",  "Concatenate", "Contiguous", "Copy",     "Divide",   "Equal",     "Exp",      "Flatten",
    "Full",   "Greater", "Less",        "Log",        "Matmul",   "Multiply", "Negative",  "NotEqual", "Reshape",
    "Select", "Sigmoid", "Sqrt",        "Square",     "Subtract", "Tanh",     "Unflatten", "View",
};

const std::unordered_set<std::string_view> reductions = {"And", "Max", "Min", "Or", "Prod", "Sum"};

// What others wait for, whether it has elements or not.
const std::unordered_set<std::string_view> exchanges = {"AllGather", "AllReduce", "Recv", "ReduceScatter", "Send"};

// Reductions that give nothing for no elements: refused where they are built.
bool is_extreme(const mx::array& a) {
  std::string_view name = a.primitive().name();
  return name == "Max" || name == "Min";
}

// Whether a node gives no elements at all. MLX divides by their number in some kernels, and gives threads nothing to do in others.
bool gives_nothing(const mx::array& a) {
  return a.size() == 0 &&
         std::all_of(a.siblings().begin(), a.siblings().end(), [](const auto& x) { return x.size() == 0; });
}

// By type: a look at a primitive's name would build a string for some.
const Kind& kind_of(const mx::Primitive& primitive) {
  static auto& kinds = *new std::unordered_map<const std::type_info*, Kind>();
  auto [it, is_new] = kinds.try_emplace(&typeid(primitive));
  if (is_new) {
    std::string_view name = primitive.name();
    bool rust = is_rust_kernel(primitive);
    bool view = !rust && views.contains(name);
    bool computes = !rust && !view && !exchanges.contains(name);
    it->second = {
        rust,
        !rust && !view && !never_throw.contains(name),
        !view,
        computes,
        name.starts_with("Scatter"),
        name.starts_with("ScatterAxis"),
        reductions.contains(name)};
  }
  return it->second;
}

// Whether the CPU has yet to compute an array, or is about to.
bool is_pending_on_cpu(const mx::array& a) {
  if (a.status() == mx::array::Status::unscheduled) {
    return a.has_primitive() && a.primitive().device() == mx::Device::cpu;
  }
  return a.event().valid() && a.event().stream().device == mx::Device::cpu && !a.is_available();
}

std::size_t physical_memory() {
  static const std::size_t bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

// MLX writes to the null pointer that a failed allocation gives. Small ones do not fail before the process is killed for memory.
void check_memory(const mx::array& a) {
  constexpr std::size_t asked_for = std::size_t{64} << 20;
  std::size_t bytes = a.nbytes();
  if (bytes < asked_for) {
    return;
  }
  if (bytes <= physical_memory()) {
    if (void* trial = std::malloc(bytes + sizeof(std::size_t))) {
      std::free(trial);
      return;
    }
  }
  throw NoMemory(
      "an array of " + std::to_string(bytes) + " bytes can't be computed: the machine has " +
      std::to_string(physical_memory()));
}

} // namespace

std::weak_ptr<void> weak_of(const mx::array& a) {
  // The handle is one shared_ptr (array_handle.h); its type is private, so that the copy's bytes become one to void.
  alignas(mx::array) unsigned char bytes[sizeof(mx::array)];
  new (bytes) mx::array(a);
  std::shared_ptr<void> shared;
  std::memcpy(static_cast<void*>(&shared), bytes, sizeof(shared));
  return shared;
}

std::optional<mx::array> array_of(const std::weak_ptr<void>& weak) {
  auto shared = weak.lock();
  if (!shared) {
    return std::nullopt;
  }
  // The other way round: these bytes are an array that owns nothing, since `shared` keeps the description while the copy is made.
  alignas(mx::array) unsigned char bytes[sizeof(mx::array)];
  std::memcpy(bytes, static_cast<const void*>(&shared), sizeof(shared));
  return *std::launder(reinterpret_cast<const mx::array*>(bytes));
}

Survey::Survey(std::shared_ptr<Batch> batch) : batch_(std::move(batch)), slots_(64) {}

Survey::Slot& Survey::slot(std::uintptr_t id) {
  std::size_t mask = slots_.size() - 1;
  std::size_t at = (id >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
  while (slots_[at].id != 0 && slots_[at].id != id) {
    at = (at + 1) & mask;
  }
  return slots_[at];
}

const Survey::Slot* Survey::find(std::uintptr_t id) const {
  const auto& found = const_cast<Survey*>(this)->slot(id);
  return found.id == id ? &found : nullptr;
}

void Survey::grow() {
  auto old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  for (auto& each : old) {
    if (each.id != 0) {
      slot(each.id) = each;
    }
  }
}

// Whether the id was not seen before.
bool Survey::open(std::uintptr_t id) {
  auto& entry = slot(id);
  if (entry.id != 0) {
    return false;
  }
  entry.id = id;
  if (++used_ * 2 > slots_.size()) {
    grow();
  }
  return true;
}

std::int32_t Survey::remember(const GuiltPtr& guilt) {
  auto it = std::find(guilts_.begin(), guilts_.end(), guilt);
  if (it == guilts_.end()) {
    guilts_.push_back(guilt);
    return static_cast<std::int32_t>(guilts_.size()) - 1;
  }
  return static_cast<std::int32_t>(it - guilts_.begin());
}

GuiltPtr Survey::visit(const mx::array& root) {
  if (root.status() != mx::array::Status::unscheduled) {
    return known_guilt(root);
  }
  std::vector<std::pair<const mx::array*, std::size_t>> walk;
  auto enter = [&](const mx::array& a) {
    if (a.status() == mx::array::Status::unscheduled && open(a.id())) {
      for (const auto& sibling : a.siblings()) {
        open(sibling.id());
      }
      walk.emplace_back(&a, 0);
    }
  };
  enter(root);
  while (!walk.empty()) {
    auto& [a, next] = walk.back();
    if (next < a->inputs().size()) {
      enter(a->inputs()[next++]);
    } else {
      const auto& done = *a;
      walk.pop_back();
      settle(done, finish(done));
    }
  }
  auto guilt = find(root.id())->verdict.guilt;
  return guilt < 0 ? nullptr : guilts_[guilt];
}

Survey::Verdict Survey::finish(const mx::array& a) {
  std::vector<std::uint32_t> own;
  std::vector<Place> earlier;
  for (const auto& in : a.inputs()) {
    if (in.status() == mx::array::Status::unscheduled) {
      auto verdict = find(in.id())->verdict;
      if (verdict.guilt >= 0) {
        return verdict;
      }
      if (verdict.entry >= 0 && std::find(own.begin(), own.end(), verdict.entry) == own.end()) {
        own.push_back(verdict.entry);
      }
      continue;
    }
    if (auto guilt = known_guilt(in)) {
      return {-1, remember(guilt)};
    }
    if (auto it = in_flight.find(in.id()); it != in_flight.end()) {
      earlier.push_back(it->second);
    }
  }
  Fault* fault = nullptr;
  if (a.has_primitive()) {
    bool on_cpu = a.primitive().device() == mx::Device::cpu;
    if (!on_cpu) {
      std::copy_if(a.inputs().begin(), a.inputs().end(), std::back_inserter(needed_), is_pending_on_cpu);
    }
    const auto& kind = kind_of(a.primitive());
    if (on_cpu && kind.allocates) {
      check_memory(a);
      for (const auto& sibling : a.siblings()) {
        check_memory(sibling);
      }
    }
    if (kind.computes && gives_nothing(a)) {
      wrap(a, a.primitive_ptr(), nullptr);
    } else if (kind.scatters && a.inputs().back().size() == 0) {
      // MLX divides by the updates' number; gradients build such nodes too.
      wrap(a, mx::contiguous(a.inputs()[0], false, a.primitive().stream()).primitive_ptr(), nullptr);
    } else if (kind.reduces && a.inputs()[0].size() == 0 && !is_extreme(a)) {
      // MLX loops for ever over some views of no elements, and on CUDA divides by their number.
      std::string_view name = a.primitive().name();
      wrap(a, a.primitive_ptr(), nullptr)->fill_with(mx::array(name == "Prod" || name == "And" ? 1 : 0, a.dtype()));
    } else if (on_cpu && (kind.rust || kind.guarded)) {
      fault = &batch_->faults.emplace_back();
      if (kind.guarded) {
        auto inner = a.primitive_ptr();
        auto* guarded = wrap(a, inner, fault);
        // MLX's gradient of a running extreme gives place -1, or the one past the end, where NaN hides whose element it was.
        if (kind.scatters_along && a.inputs()[1].dtype() == mx::uint32) {
          guarded->keep_inside(a.shape(static_cast<mx::ScatterAxis&>(*inner).state().second));
        }
      }
    }
  }
  if (fault == nullptr && earlier.empty()) {
    if (own.empty()) {
      return {};
    }
    if (own.size() == 1) {
      return {static_cast<std::int32_t>(own[0]), -1};
    }
  }
  batch_->entries.push_back({fault, std::move(own), std::move(earlier)});
  return {static_cast<std::int32_t>(batch_->entries.size()) - 1, -1};
}

void Survey::settle(const mx::array& a, Verdict verdict) {
  auto settle_one = [&](const mx::array& each) {
    slot(each.id()).verdict = verdict;
    if (verdict.entry >= 0) {
      batch_->watched.push_back({weak_of(each), each.id(), static_cast<std::uint32_t>(verdict.entry)});
    }
  };
  settle_one(a);
  for (const auto& sibling : a.siblings()) {
    settle_one(sibling);
  }
}

Guarded* Survey::wrap(const mx::array& a, std::shared_ptr<mx::Primitive> inner, Fault* fault) {
  auto original = a.primitive_ptr();
  auto guarded = std::make_shared<Guarded>(std::move(inner), batch_, fault);
  auto wrap_one = [&](const mx::array& each) {
    wrapped_.emplace_back(weak_of(each), original);
    each.primitive_ptr() = guarded;
  };
  wrap_one(a);
  for (const auto& sibling : a.siblings()) {
    wrap_one(sibling);
  }
  // The arrays hold it.
  return guarded.get();
}

Fault* Survey::fault_of(std::uintptr_t id) const {
  const auto* found = find(id);
  return found == nullptr || found->verdict.entry < 0 ? nullptr : batch_->entries[found->verdict.entry].fault;
}

void Survey::unwrap() noexcept {
  for (auto& [weak, original] : wrapped_) {
    if (auto a = array_of(weak); a && a->has_primitive()) {
      a->primitive_ptr() = std::move(original);
    }
  }
  wrapped_.clear();
}

} // namespace oxmlx::evaluation

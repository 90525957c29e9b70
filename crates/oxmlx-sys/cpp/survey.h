// A walk over the lazy part of a graph before it is dispatched.
#pragma once

#include "evaluation.h"

#include "mlx/primitives.h"

#include <unordered_map>
#include <utility>

namespace oxmlx::evaluation {

// What is known of an array that was evaluated: where it stands in a batch that is not retired.
extern std::unordered_map<std::uintptr_t, Place>& in_flight;

// The failure of an entry as far as it is known now.
GuiltPtr guilt_at(const Batch& batch, std::uint32_t entry);
// The failure of an array that was evaluated.
GuiltPtr known_guilt(const mlx::core::array& a);

// A weak reference to an array's description: the graph is not kept, and the id is not used again while it lives.
std::weak_ptr<void> weak_of(const mlx::core::array& a);
// The array again, when it is still there.
std::optional<mlx::core::array> array_of(const std::weak_ptr<void>& weak);

// Whether a primitive is a node whose body is Rust. Such a one tells its failure itself.
bool is_rust_kernel(const mlx::core::Primitive& primitive);

class Guarded;

class Survey {
 public:
  explicit Survey(std::shared_ptr<Batch> batch);

  // Walks from `a`. Returns the failure that it depends on, if one is known. Throws bad_alloc for an array that no memory can hold.
  GuiltPtr visit(const mlx::core::array& a);

  // The fault of a node by its output's id; null when it has none.
  Fault* fault_of(std::uintptr_t id) const;

  // What the CPU has not computed yet and nodes of a GPU need, in the order of dependence.
  const std::vector<mlx::core::array>& needed() const {
    return needed_;
  }

  // Gives wrapped primitives that were not used up back to their arrays: a trace still needs them.
  void unwrap() noexcept;

 private:
  struct Verdict {
    std::int32_t entry = -1;
    std::int32_t guilt = -1;
  };
  struct Slot {
    std::uintptr_t id = 0;
    Verdict verdict;
  };

  bool open(std::uintptr_t id);
  Slot& slot(std::uintptr_t id);
  const Slot* find(std::uintptr_t id) const;
  void grow();
  std::int32_t remember(const GuiltPtr& guilt);
  Verdict finish(const mlx::core::array& a);
  void settle(const mlx::core::array& a, Verdict verdict);
  Guarded* wrap(const mlx::core::array& a, std::shared_ptr<mlx::core::Primitive> inner, Fault* fault);

  std::shared_ptr<Batch> batch_;
  std::vector<Slot> slots_;
  std::size_t used_{0};
  std::vector<GuiltPtr> guilts_;
  std::vector<mlx::core::array> needed_;
  std::vector<std::pair<std::weak_ptr<void>, std::shared_ptr<mlx::core::Primitive>>> wrapped_;
};

} // namespace oxmlx::evaluation

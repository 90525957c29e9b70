// Evaluation whose failures stay with the guilty.
//
// MLX keeps the error of a kernel on its stream, tells it to whoever waits there next, and forgets it. Here every node that may fail
// gets a Fault of its own before it is dispatched, and what depends on it is written down: MLX drops the graph while it dispatches.
#pragma once

#include "array_handle.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace oxmlx::evaluation {

// The Rust side of a failure: what failed, and how. A panic's payload is in it.
struct Guilt;
using GuiltPtr = std::shared_ptr<rust::Box<Guilt>>;

// How one node came out. Set once by the node's task, on its stream's thread.
class Fault {
 public:
  void fail(rust::Box<Guilt> guilt) const noexcept;
  // Null unless it failed.
  GuiltPtr guilt() const noexcept {
    return failed_.load(std::memory_order_acquire) ? guilt_ : nullptr;
  }

 private:
  mutable GuiltPtr guilt_;
  mutable std::atomic<bool> failed_{false};
};

class Batch;

// A node's place in a batch.
struct Place {
  std::shared_ptr<Batch> batch;
  std::uint32_t entry;
};

// What one evaluation dispatched, as far as it may fail or depends on what may.
class Batch {
 public:
  struct Entry {
    Fault* fault; // null for a node that can't fail itself
    std::vector<std::uint32_t> own; // entries of this batch that it depends on; all come before it
    std::vector<Place> earlier; // entries of other batches
  };
  struct Watched {
    std::weak_ptr<void> array;
    std::uintptr_t id;
    std::uint32_t entry;
  };

  // Tasks that were dispatched and are not done.
  std::atomic<int> open{0};
  std::deque<Fault> faults;
  std::vector<Entry> entries;
  std::vector<Watched> watched;
  // Once all tasks are done: one an entry, or none at all when nothing failed.
  bool retired{false};
  std::vector<GuiltPtr> guilts;
};

// What the task of a node holds to tell how it came out.
class Ticket {
 public:
  Ticket(std::shared_ptr<Batch> batch, Fault* fault) : batch_(std::move(batch)), fault_(fault) {
    batch_->open.fetch_add(1, std::memory_order_relaxed);
  }
  // For a node that nobody surveyed.
  static Ticket alone() {
    auto batch = std::make_shared<Batch>();
    auto* fault = &batch->faults.emplace_back();
    return {std::move(batch), fault};
  }
  const Fault& fault() const noexcept {
    return *fault_;
  }
  void done() const noexcept {
    batch_->open.fetch_sub(1, std::memory_order_release);
  }

 private:
  std::shared_ptr<Batch> batch_;
  Fault* fault_;
};

// The ticket of a node that is being dispatched by evaluate(); none when MLX evaluates for itself.
std::optional<Ticket> ticket_of(const mlx::core::array& output);

// Dispatches `arrays` and all they depend on; waits for them too when `wait` is set, on this thread and with the lock held, as it has
// to be inside a transform. An array that is known to depend on a failure is left out: the failure of the first one is returned.
//
// A GPU's stream that needs what the CPU has not computed yet waits for it inside MLX's dispatch, on CUDA, and so would whoever holds the
// lock. So nothing is dispatched while there is such: it comes in `needed`, in the order of dependence, to be evaluated and waited for first.
const Guilt* evaluate(rust::Slice<const mlx::core::array> arrays, bool wait, rust::Vec<mlx::core::array>& needed);

// The failure that an evaluated array depends on, as far as it is known; null when there is none.
const Guilt* guilt_of(const mlx::core::array& a);

// Whether the values are there. Marks the array as available once its event was signalled.
bool is_available(const mlx::core::array& a);

// Gives an array a failure that MLX told and that no node of ours was found for.
const Guilt* blame(const mlx::core::array& a, rust::Str text);

// How many arrays are watched and how many batches are open: for tests of leaks.
std::size_t records();

// Makes this thread MLX's main thread: the only one whose dispatches throw the error that lies on a stream. Called once, before any
// other use of MLX, by a thread that lives as long as the process and never dispatches: its dispatches would take errors from the guilty.
void adopt_main_thread();

// From here on `exit` takes the lock before it destroys the statics that exist by now. Called once MLX has its streams.
void guard_exit();

} // namespace oxmlx::evaluation

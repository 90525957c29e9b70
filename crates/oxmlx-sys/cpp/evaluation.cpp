#include "oxmlx-sys/src/evaluation.rs.h"

#include "guarded.h"
#include "survey.h"

#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/ops.h"
#include "mlx/scheduler.h"
#include "mlx/transforms.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

namespace mx = mlx::core;

namespace oxmlx::evaluation {

// All state here is used under the process-wide lock only, but for what is atomic. None of it is destroyed: tasks may outlive main.
std::unordered_map<std::uintptr_t, Place>& in_flight = *new std::unordered_map<std::uintptr_t, Place>();

namespace {

struct Condemned {
  std::weak_ptr<void> array;
  GuiltPtr guilt;
};

// Arrays that depend on a failure, for as long as a handle of them lives.
auto& condemned = *new std::unordered_map<std::uintptr_t, Condemned>();
std::size_t condemned_after_purge = 0;

// Batches that are not retired, in the order of their dispatch.
auto& batches = *new std::deque<std::shared_ptr<Batch>>();

// Whether anything failed since the process began: as long as not, no look for failures is needed.
std::atomic<bool> any_failure{false};

// The evaluation that is being dispatched.
struct Dispatch {
  std::shared_ptr<Batch> batch;
  const Survey* survey;
};
Dispatch* dispatching = nullptr;

void condemn(std::uintptr_t id, std::weak_ptr<void> array, GuiltPtr guilt) {
  if (condemned.size() >= 2 * condemned_after_purge + 64) {
    std::erase_if(condemned, [](const auto& each) { return each.second.array.expired(); });
    condemned_after_purge = condemned.size();
  }
  condemned.insert_or_assign(id, Condemned{std::move(array), std::move(guilt)});
}

// Everything in the batch has run, and all batches before it are retired.
void retire(Batch& batch) {
  if (any_failure.load(std::memory_order_acquire)) {
    batch.guilts.resize(batch.entries.size());
    for (std::size_t i = 0; i < batch.entries.size(); ++i) {
      batch.guilts[i] = guilt_at(batch, static_cast<std::uint32_t>(i));
    }
  }
  batch.retired = true;
  for (auto& watched : batch.watched) {
    if (auto it = in_flight.find(watched.id); it != in_flight.end() && it->second.batch.get() == &batch) {
      in_flight.erase(it);
      if (!batch.guilts.empty() && batch.guilts[watched.entry] && !watched.array.expired()) {
        condemn(watched.id, std::move(watched.array), batch.guilts[watched.entry]);
      }
    }
  }
  batch.watched.clear();
  batch.entries.clear();
}

void retire_those_done() {
  while (!batches.empty() && batches.front()->open.load(std::memory_order_acquire) == 0) {
    auto batch = std::move(batches.front());
    batches.pop_front();
    retire(*batch);
  }
}

// Keeps the batch for as long as its tasks run or its arrays are asked about.
void keep(const std::shared_ptr<Batch>& batch) {
  std::erase_if(batch->watched, [](const auto& watched) { return watched.array.expired(); });
  if (batch->watched.empty() && batch->open.load(std::memory_order_acquire) == 0) {
    return;
  }
  for (const auto& watched : batch->watched) {
    in_flight.insert_or_assign(watched.id, Place{batch, watched.entry});
  }
  batches.push_back(batch);
}

const Guilt* bare(const GuiltPtr& guilt) {
  return guilt ? &**guilt : nullptr;
}

} // namespace

void Fault::fail(rust::Box<Guilt> guilt) const noexcept {
  guilt_ = std::make_shared<rust::Box<Guilt>>(std::move(guilt));
  any_failure.store(true, std::memory_order_release);
  failed_.store(true, std::memory_order_release);
}

GuiltPtr guilt_at(const Batch& batch, std::uint32_t entry) {
  if (batch.retired) {
    return batch.guilts.empty() ? nullptr : batch.guilts[entry];
  }
  if (!any_failure.load(std::memory_order_acquire)) {
    return nullptr;
  }
  // Depth first, and a node's own failure after those of what it depends on: the first cause is told.
  std::set<std::pair<const Batch*, std::uint32_t>> seen;
  std::vector<std::pair<std::pair<const Batch*, std::uint32_t>, bool>> walk{{{&batch, entry}, false}};
  while (!walk.empty()) {
    auto [at, left] = walk.back();
    walk.pop_back();
    const auto& [of, i] = at;
    if (of->retired) {
      if (!of->guilts.empty() && of->guilts[i]) {
        return of->guilts[i];
      }
      continue;
    }
    const auto& node = of->entries[i];
    if (left) {
      if (auto guilt = node.fault == nullptr ? nullptr : node.fault->guilt()) {
        return guilt;
      }
      continue;
    }
    if (!seen.insert(at).second) {
      continue;
    }
    walk.push_back({at, true});
    for (auto it = node.own.rbegin(); it != node.own.rend(); ++it) {
      walk.push_back({{of, *it}, false});
    }
    for (auto it = node.earlier.rbegin(); it != node.earlier.rend(); ++it) {
      walk.push_back({{it->batch.get(), it->entry}, false});
    }
  }
  return nullptr;
}

GuiltPtr known_guilt(const mx::array& a) {
  if (!condemned.empty()) {
    if (auto it = condemned.find(a.id()); it != condemned.end()) {
      return it->second.guilt;
    }
  }
  if (!in_flight.empty()) {
    if (auto it = in_flight.find(a.id()); it != in_flight.end()) {
      return guilt_at(*it->second.batch, it->second.entry);
    }
  }
  return nullptr;
}

std::optional<Ticket> ticket_of(const mx::array& output) {
  if (dispatching != nullptr) {
    if (auto* fault = dispatching->survey->fault_of(output.id())) {
      return Ticket(dispatching->batch, fault);
    }
  }
  return std::nullopt;
}

const Guilt* evaluate(rust::Slice<const mx::array> arrays, bool wait, rust::Vec<mx::array>& needed) {
  retire_those_done();
  auto batch = std::make_shared<Batch>();
  Survey survey(batch);
  // A wait of one device for the other has no place in the end of a dispatch either, where MLX joins its streams.
  std::vector<mx::array> on_cpu;
  std::vector<mx::array> on_gpu;
  const Guilt* first = nullptr;
  struct Finish {
    Survey& survey;
    const std::shared_ptr<Batch>& batch;
    ~Finish() {
      dispatching = nullptr;
      survey.unwrap();
      if (survey.needed().empty()) {
        keep(batch);
      }
    }
  } finish{survey, batch};
  for (const auto& a : arrays) {
    if (auto guilt = survey.visit(a)) {
      // Whoever holds it lives while `a` does.
      first = first == nullptr ? bare(guilt) : first;
    } else {
      bool lazy_on_gpu = a.has_primitive() && a.primitive().device() == mx::Device::gpu;
      (lazy_on_gpu ? on_gpu : on_cpu).push_back(a);
    }
  }
  if (!survey.needed().empty()) {
    for (const auto& a : survey.needed()) {
      needed.push_back(a);
    }
    return nullptr;
  }
  Dispatch dispatch{batch, &survey};
  dispatching = &dispatch;
  for (auto* wanted : {&on_gpu, &on_cpu}) {
    if (wanted->empty()) {
      continue;
    }
    if (wait) {
      mx::eval(std::move(*wanted));
    } else {
      mx::async_eval(std::move(*wanted));
    }
  }
  return first;
}

const Guilt* guilt_of(const mx::array& a) {
  if (a.status() == mx::array::Status::unscheduled) {
    return nullptr;
  }
  retire_those_done();
  return bare(known_guilt(a));
}

bool is_available(const mx::array& a) {
  return a.is_available();
}

const Guilt* blame(const mx::array& a, rust::Str text) {
  if (const auto* guilt = guilt_of(a)) {
    return guilt;
  }
  auto guilt = std::make_shared<rust::Box<Guilt>>(guilt_of_mlx(text));
  condemn(a.id(), weak_of(a), guilt);
  return bare(guilt);
}

std::size_t records() {
  retire_those_done();
  return in_flight.size() + condemned.size() + batches.size();
}

void adopt_main_thread() {
  // The CUDA library asks here for the first time whether it is on the main thread; there is nothing to clear yet.
  mx::clear_streams();
  if (mx::device_count(mx::Device::gpu) == 0) {
    mx::scheduler::scheduler();
  }
}

namespace {

// Waits until the CPU's streams have run what they were given. A task frees arrays as it ends, also when nobody may enter any more, and
// `exit` is about to destroy the allocator. A kernel that takes longer than this is left behind: it won't end within what is left of the process.
void drain_streams(std::chrono::milliseconds patience) {
  struct Left {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
  };
  auto left = std::make_shared<Left>();
  for (const auto& stream : mx::get_streams()) {
    if (stream.device != mx::Device::cpu) {
      continue;
    }
    std::unique_lock lock(left->mutex);
    ++left->count;
    lock.unlock();
    auto tell = [left] {
      std::lock_guard lock(left->mutex);
      --left->count;
      left->changed.notify_all();
    };
    // The first time may throw an error that was left on the stream, and is gone then; nobody will ask for it. What throws twice is a
    // stream whose thread can't be started, which has nothing to do.
    bool told = false;
    for (int i = 0; i < 2 && !told; ++i) {
      try {
        mx::scheduler::enqueue(stream, tell);
        told = true;
      } catch (...) {
      }
    }
    if (!told) {
      tell();
    }
  }
  std::unique_lock lock(left->mutex);
  left->changed.wait_for(lock, patience, [&] { return left->count == 0; });
}

} // namespace

void guard_exit() {
  std::atexit([] {
    if (hold_for_exit()) {
      drain_streams(std::chrono::seconds(2));
    }
  });
}

// What MLX must not run: true when the outputs have come about without it.
bool Guarded::given(std::vector<mx::array>& outputs) {
  if (fill_) {
    auto strides = mx::Strides(outputs[0].ndim(), 0);
    auto flags = mx::array::Flags{outputs[0].size() <= 1, outputs[0].size() <= 1, outputs[0].size() <= 1};
    outputs[0].copy_shared_buffer(*fill_, strides, flags, fill_->data_size());
    return true;
  }
  if (outputs[0].size() > 0) {
    return false;
  }
  for (auto& out : outputs) {
    out.set_data(mx::allocator::malloc(0));
  }
  return true;
}

namespace {

mx::array inside(const mx::array& places, std::uint32_t count, mx::Stream stream) {
  mx::array last(count - 1, mx::uint32);
  auto minimum = mx::minimum(last, last, stream).primitive_ptr();
  mx::array everywhere(places.shape(), mx::uint32, nullptr, {});
  everywhere.copy_shared_buffer(last, mx::Strides(places.ndim(), 0), {false, false, false}, 1);
  std::vector<mx::array> kept{mx::array(places.shape(), mx::uint32, nullptr, {})};
  minimum->eval_cpu({places, everywhere}, kept);
  auto& encoder = mx::cpu::get_command_encoder(stream);
  encoder.add_temporary(everywhere);
  encoder.add_temporary(kept[0]);
  return kept[0];
}

} // namespace

void Guarded::eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  if (fault_ == nullptr) {
    if (!given(outputs)) {
      inner_->eval_cpu({inputs[0]}, outputs);
    }
    return;
  }
  if (places_ > 0) {
    auto kept = inputs;
    kept[1] = inside(inputs[1], places_, stream());
    inner_->eval_cpu(kept, outputs);
  } else {
    inner_->eval_cpu(inputs, outputs);
  }
  Ticket ticket(batch_, fault_);
  mx::scheduler::enqueue(stream(), [ticket, stream = stream()]() {
    on_stream_thread();
    try {
      mx::scheduler::check_error(stream);
    } catch (const std::exception& e) {
      ticket.fault().fail(guilt_of_mlx(e.what()));
    }
    ticket.done();
  });
}

void Guarded::eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  if (!given(outputs)) {
    inner_->eval_gpu({inputs[0]}, outputs);
  }
}

} // namespace oxmlx::evaluation

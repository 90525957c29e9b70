#include "oxmlx-sys/src/storage.rs.h"

#include "runtime.h"

#include "mlx/ops.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace oxmlx::storage {

namespace mx = mlx::core;
using detail::Adopted;
using detail::AdoptedMemory;
using detail::CudaBuffer;

namespace {

// How many views there are of a storage, by its identity. Kept on CUDA only, where reading by the host moves what it reads.
class Pins {
 public:
  void count(std::size_t storage, bool more) {
    std::lock_guard lock(mutex_);
    if (more) {
      ++views_[storage];
    } else if (auto at = views_.find(storage); at != views_.end() && --at->second == 0) {
      views_.erase(at);
    }
  }

  bool has(std::size_t storage) const {
    std::lock_guard lock(mutex_);
    return views_.contains(storage);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, std::size_t> views_;
};

Pins& pins() {
  static auto* pins = new Pins(); // never destroyed: views may outlive static objects
  return *pins;
}

Facts told(StorageExportStatus status, const StorageView* view) {
  Facts facts{};
  facts.status = static_cast<std::uint8_t>(status);
  if (view == nullptr) {
    return facts;
  }
  facts.backend = static_cast<std::uint8_t>(view->backend());
  facts.ordinal = view->backend() == StorageBackend::host ? 0 : view->device().index;
  facts.managed = view->managed();
  facts.storage = reinterpret_cast<std::size_t>(view->storage_id());
  facts.buffer = reinterpret_cast<std::size_t>(view->buffer());
  facts.host = reinterpret_cast<std::size_t>(view->host_data());
  facts.byte_offset = view->byte_offset();
  facts.span_nbytes = view->storage_span_nbytes();
  facts.contiguous = view->contiguous();
  facts.row_contiguous = view->row_contiguous();
  facts.col_contiguous = view->col_contiguous();
  return facts;
}

constexpr mx::array::Flags packed{true, true, true};

// The page of Apple silicon.
constexpr std::size_t metal_page = 16384;

// An array without a graph, that counts as computed; its storage is to come.
mx::array available(mx::Shape shape, mx::Dtype dtype) {
  mx::array made(std::move(shape), dtype, nullptr, {});
  made.set_status(mx::array::Status::available);
  return made;
}

// An array of bytes without a graph over `storage`, `offset` bytes behind its own start.
mx::array moved(const mx::array& storage, std::int64_t offset) {
  auto bytes = available({}, mx::uint8);
  bytes.copy_shared_buffer(storage, {}, packed, 1, offset);
  return bytes;
}

mx::array scalar_over(void* buffer, mx::allocator::Deleter deleter, std::int64_t offset) {
  auto memory = available({}, mx::uint8);
  memory.set_data(mx::allocator::Data(mx::allocator::Buffer(buffer), std::move(deleter)), 1, {}, packed, offset);
  return memory;
}

// What the deleter of adopted memory holds. Its end is the owner's.
struct Hold {
  explicit Hold(rust::Box<Owner> owner) : owner(std::move(owner)) {}
  ~Hold() {
    AdoptedMemory::instance().remove(registered);
  }

  rust::Box<Owner> owner;
  const void* registered = nullptr;
  // The CPU's allocator has a buffer's size in the word before its memory, and MLX asks for it here and there. Memory of others
  // has no such word, so the buffer is this one, and an array's offset leads from behind it to the memory. Zero: a buffer that is
  // larger than its array would make MLX copy where it need not.
  std::size_t word = 0;
  CudaBuffer cuda{};
};

void hold(Hold& hold, const void* buffer, Adopted adopted) {
  AdoptedMemory::instance().add(buffer, adopted);
  hold.registered = buffer;
}

} // namespace

Facts facts(const Handle& a, bool require_row_contiguous, std::uint8_t backend) {
  StorageExportOptions options{.require_row_contiguous = require_row_contiguous};
  if (backend <= static_cast<std::uint8_t>(StorageBackend::metal)) {
    options.backend = static_cast<StorageBackend>(backend);
  }
  auto [status, view] = try_export_storage(a, options);
  return told(status, view ? &*view : nullptr);
}

Facts metal_facts(const Handle& a, bool require_row_contiguous) {
  auto [status, view] = try_export_metal_storage(a, {.require_row_contiguous = require_row_contiguous});
  return told(status, view ? &*view : nullptr);
}

std::uint8_t loaded_backend() {
  return static_cast<std::uint8_t>(detail::loaded_backend());
}

Handle retain(const Handle& a) {
  auto made = available(a.shape(), a.dtype());
  made.copy_shared_buffer(a);
  return made;
}

void pin(std::size_t storage, bool more) {
  pins().count(storage, more);
}

bool host_readable(const Handle& a) {
  const auto& data = a.data_shared_ptr();
  if (detail::loaded_backend() != StorageBackend::cuda || !data || data->buffer().ptr() == nullptr) {
    return true;
  }
  const void* buffer = data->buffer().ptr();
  if (!data->is_owned()) {
    const auto adopted = AdoptedMemory::instance().find(buffer);
    return !adopted || adopted->host_visible;
  }
  return static_cast<const CudaBuffer*>(buffer)->device == -1 || !pins().has(reinterpret_cast<std::size_t>(data.get()));
}

Handle copied(const Handle& a) {
  // `copy` shares its input's storage; a choice between two equal arrays writes a new one, bit for bit.
  return mx::where(mx::array(true), a, a, current_stream());
}

rust::Vec<Handle> adopt_host(std::size_t data, std::size_t nbytes, bool whole_pages, rust::Box<Owner> owner) {
  rust::Vec<Handle> adopted;
  auto* const base = reinterpret_cast<char*>(data);
  auto keep = std::make_shared<Hold>(std::move(owner));
  switch (detail::loaded_backend()) {
    case StorageBackend::host: {
      mx::allocator::Buffer buffer(&keep->word);
      hold(*keep, buffer.ptr(), {base, nbytes, 0, true});
      const auto offset = static_cast<std::int64_t>(data - reinterpret_cast<std::size_t>(buffer.raw_ptr()));
      adopted.push_back(scalar_over(buffer.ptr(), [keep](auto) {}, offset));
      break;
    }
    case StorageBackend::metal: {
      // Metal takes whole pages only.
      const std::size_t before = whole_pages ? data % metal_page : 0;
      const std::size_t length = before + nbytes;
      const std::size_t after = whole_pages ? (metal_page - length % metal_page) % metal_page : 0;
      if (auto buffer = mx::allocator::make_buffer(base - before, length + after); buffer.ptr() != nullptr) {
        auto release = [keep](mx::allocator::Buffer b) { mx::allocator::release(b); };
        adopted.push_back(scalar_over(buffer.ptr(), release, static_cast<std::int64_t>(before)));
      }
      break;
    }
    case StorageBackend::cuda:
      break;
  }
  return adopted;
}

Handle
adopt_device(std::size_t data, std::size_t nbytes, std::int32_t ordinal, bool host_visible, rust::Box<Owner> owner) {
  auto keep = std::make_shared<Hold>(std::move(owner));
  auto* const base = reinterpret_cast<char*>(data);
  switch (detail::loaded_backend()) {
    case StorageBackend::metal:
      return scalar_over(base, [keep](auto) {}, 0);
    case StorageBackend::cuda:
      // As memory that host and devices share: for memory of a device MLX would free what is not its own on a read by the host.
      keep->cuda = {base, nbytes, -1};
      hold(*keep, &keep->cuda, {base, nbytes, ordinal, host_visible});
      return scalar_over(&keep->cuda, [keep](auto) {}, 0);
    case StorageBackend::host:
      break;
  }
  throw Refused("the loaded MLX library has no GPU backend, so that it can't use memory of one");
}

Handle over(
    const Handle& memory,
    std::size_t offset,
    rust::Slice<const std::int32_t> shape,
    rust::Slice<const std::int64_t> strides,
    std::uint8_t dtype) {
  auto made = available(mx::Shape(shape.begin(), shape.end()), dtype_of(dtype));
  mx::array::Flags flags = packed;
  std::size_t reached = 1;
  std::size_t distinct = 1;
  std::int64_t row = 1;
  std::int64_t column = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto back = shape.size() - 1 - i;
    flags.col_contiguous &= shape[i] == 1 || strides[i] == column;
    flags.row_contiguous &= shape[back] == 1 || strides[back] == row;
    column *= shape[i];
    row *= shape[back];
    reached += static_cast<std::size_t>((shape[i] - 1) * strides[i]);
    distinct *= strides[i] > 0 ? shape[i] : 1;
  }
  flags.contiguous = reached == distinct;
  made.copy_shared_buffer(
      moved(memory, static_cast<std::int64_t>(offset)), mx::Strides(strides.begin(), strides.end()), flags, reached);
  return made;
}

std::size_t to_c(const Handle& a) {
  return reinterpret_cast<std::size_t>(new Handle(a));
}

Handle from_c(std::size_t ctx, bool take) {
  auto* const heap = reinterpret_cast<Handle*>(ctx);
  Handle a = *heap;
  if (take) {
    delete heap;
  }
  return a;
}

Handle shifted_for_test(const Handle& a, std::int64_t bytes) {
  auto made = available(a.shape(), a.dtype());
  made.copy_shared_buffer(moved(a, bytes), a.strides(), a.flags(), a.data_size());
  return made;
}

Handle without_storage_for_test(const Handle& a) {
  return available(a.shape(), a.dtype());
}

} // namespace oxmlx::storage

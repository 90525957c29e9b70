// Files in memory: a reader that owns its bytes and a writer that collects them.
#pragma once

#include "rust/cxx.h"

#include "mlx/io/load.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace oxmlx {

// Loading is lazy: MLX keeps the reader until the arrays are evaluated, and reads at offsets from threads of its own.
class BytesReader : public mlx::core::io::Reader {
 public:
  explicit BytesReader(rust::Vec<std::uint8_t>&& bytes) : bytes_(std::move(bytes)) {}

  bool is_open() const override {
    return true;
  }

  bool good() const override {
    return true;
  }

  std::size_t tell() override {
    return at_;
  }

  void seek(std::int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) override {
    const std::int64_t from = way == std::ios_base::beg ? 0 : way == std::ios_base::cur ? at_ : bytes_.size();
    if (offset < -from || offset > static_cast<std::int64_t>(bytes_.size()) - from) {
      throw std::out_of_range("a seek outside the " + std::to_string(bytes_.size()) + " bytes given");
    }
    at_ = static_cast<std::size_t>(from + offset);
  }

  void read(char* data, std::size_t n) override {
    read(data, n, at_);
    at_ += n;
  }

  void read(char* data, std::size_t n, std::size_t offset) override {
    if (offset > bytes_.size() || n > bytes_.size() - offset) {
      throw std::out_of_range(
          std::to_string(n) + " bytes wanted at " + std::to_string(offset) + " of " + std::to_string(bytes_.size()));
    }
    if (n != 0) {
      std::memcpy(data, bytes_.data() + offset, n);
    }
  }

  std::string label() const override {
    return "bytes in memory";
  }

 private:
  rust::Vec<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

class BytesWriter : public mlx::core::io::Writer {
 public:
  bool is_open() const override {
    return true;
  }

  bool good() const override {
    return true;
  }

  std::size_t tell() override {
    return at_;
  }

  void seek(std::int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) override {
    const std::int64_t from = way == std::ios_base::beg ? 0 : way == std::ios_base::cur ? at_ : bytes_.size();
    if (offset < -from) {
      throw std::out_of_range("a seek before the first byte");
    }
    at_ = static_cast<std::size_t>(from + offset);
  }

  void write(const char* data, std::size_t n) override {
    bytes_.resize(std::max(bytes_.size(), at_ + n));
    std::copy_n(data, n, bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ += n;
  }

  std::string label() const override {
    return "bytes in memory";
  }

  rust::Vec<std::uint8_t> taken() const {
    rust::Vec<std::uint8_t> out;
    out.reserve(bytes_.size());
    std::copy(bytes_.begin(), bytes_.end(), std::back_inserter(out));
    return out;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

inline std::shared_ptr<mlx::core::io::Reader> to_reader(rust::Vec<std::uint8_t>&& bytes) {
  return std::make_shared<BytesReader>(std::move(bytes));
}

// What `save` writes.
template <typename Save>
rust::Vec<std::uint8_t> written(Save&& save) {
  auto writer = std::make_shared<BytesWriter>();
  save(writer);
  return writer->taken();
}

} // namespace oxmlx

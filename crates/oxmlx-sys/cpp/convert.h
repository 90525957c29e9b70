// Between the bridge's types and MLX's: one function a pair, used by the generated shim.
#pragma once

#include "array_handle.h"
#include "bytes.h"
#include "oxmlx-sys/src/types.rs.h"

#include "mlx/compile.h"
#include "mlx/fft.h"
#include "mlx/io.h"
#include "mlx/stream.h"
#include "mlx/utils.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace oxmlx {

namespace mx = mlx::core;

// ---- into MLX ----

inline mx::Shape to_shape(rust::Slice<const std::int32_t> x) {
  return mx::Shape(x.begin(), x.end());
}

inline mx::Strides to_strides(rust::Slice<const std::int64_t> x) {
  return mx::Strides(x.begin(), x.end());
}

inline std::vector<int> to_ints(rust::Slice<const std::int32_t> x) {
  return std::vector<int>(x.begin(), x.end());
}

inline std::optional<std::vector<int>> to_ints(bool given, rust::Slice<const std::int32_t> x) {
  return given ? std::make_optional(to_ints(x)) : std::nullopt;
}

inline std::vector<mx::array> to_arrays(rust::Slice<const mx::array> x) {
  return std::vector<mx::array>(x.begin(), x.end());
}

inline std::string to_text(rust::Str x) {
  return std::string(x);
}

template <typename T>
std::optional<T> to_optional(const T* x) {
  return x ? std::optional<T>(*x) : std::nullopt;
}

inline std::optional<int> to_optional(OptInt x) {
  return x.given ? std::optional<int>(x.value) : std::nullopt;
}

inline std::optional<float> to_optional(OptFloat x) {
  return x.given ? std::optional<float>(x.value) : std::nullopt;
}

inline std::optional<bool> to_optional(OptBool x) {
  return x.given ? std::optional<bool>(x.value) : std::nullopt;
}

// MLX's dtypes in the order of Dtype::Val, so that a code indexes them.
inline constexpr std::array<mx::Dtype, 14> dtypes{
    mx::bool_,
    mx::uint8,
    mx::uint16,
    mx::uint32,
    mx::uint64,
    mx::int8,
    mx::int16,
    mx::int32,
    mx::int64,
    mx::float16,
    mx::float32,
    mx::float64,
    mx::bfloat16,
    mx::complex64};
static_assert(dtypes[static_cast<std::size_t>(DtypeCode::Float16)].val() == mx::Dtype::Val::float16);
static_assert(dtypes[static_cast<std::size_t>(DtypeCode::Bfloat16)].val() == mx::Dtype::Val::bfloat16);
static_assert(static_cast<int>(DtypeCode::Complex64) == static_cast<int>(mx::Dtype::Val::complex64));

// A code that stands for nothing; only a fault of the bridge itself can make one.
template <typename Code>
[[noreturn]] void unknown_code(const char* what, Code code) {
  throw std::invalid_argument(std::string("unknown code ") + std::to_string(static_cast<int>(code)) + " of " + what);
}

template <typename Code, typename T, std::size_t n>
const T& pick(const char* what, const std::array<T, n>& all, Code code) {
  auto at = static_cast<std::size_t>(code);
  if (at >= n) {
    unknown_code(what, code);
  }
  return all[at];
}

inline const mx::Dtype& to_dtype(DtypeCode x) {
  return pick("Dtype", dtypes, x);
}

inline std::optional<mx::Dtype> to_optional(OptDtype x) {
  return x.given ? std::optional<mx::Dtype>(to_dtype(x.value)) : std::nullopt;
}

inline mx::Dtype::Kind to_kind(DtypeKindCode x) {
  using K = mx::Dtype::Kind;
  return pick("DtypeKind", std::array{K::b, K::u, K::i, K::f, K::c, K::V}, x);
}

inline mx::Dtype::Category to_category(DtypeCategoryCode x) {
  return pick(
      "DtypeCategory",
      std::array{
          mx::complexfloating,
          mx::floating,
          mx::inexact,
          mx::signedinteger,
          mx::unsignedinteger,
          mx::integer,
          mx::number,
          mx::generic},
      x);
}

inline std::string to_text(QuantModeCode x) {
  return pick("QuantMode", std::array{"affine", "mxfp4", "mxfp8", "nvfp4"}, x);
}

inline std::string to_text(PadModeCode x) {
  return pick("PadMode", std::array{"constant", "edge", "symmetric", "reflect"}, x);
}

inline std::string to_text(MaskModeCode x) {
  return pick("MaskMode", std::array{"", "causal", "array"}, x);
}

inline std::string to_text(IndexingCode x) {
  return pick("Indexing", std::array{"xy", "ij"}, x);
}

inline std::string to_text(SideCode x) {
  return pick("Side", std::array{"left", "right"}, x);
}

inline std::string to_text(TriangleCode x) {
  return pick("Triangle", std::array{"L", "U"}, x);
}

inline std::string to_text(MatrixNormCode x) {
  return pick("MatrixNorm", std::array{"fro", "nuc"}, x);
}

inline mx::fft::FFTNorm to_fft_norm(FftNormCode x) {
  using N = mx::fft::FFTNorm;
  return pick("FftNorm", std::array{N::Backward, N::Ortho, N::Forward}, x);
}

inline mx::CompileMode to_compile_mode(CompileModeCode x) {
  using M = mx::CompileMode;
  return pick("CompileMode", std::array{M::disabled, M::no_simplify, M::no_fuse, M::enabled}, x);
}

inline std::pair<int, int> to_pair(IntPair x) {
  return {x.first, x.second};
}

inline std::tuple<int, int, int> to_triple(IntTriple x) {
  return {x.first, x.second, x.third};
}

inline std::vector<std::pair<int, int>> to_pairs(rust::Slice<const IntPair> x) {
  std::vector<std::pair<int, int>> out;
  out.reserve(x.size());
  for (const auto& pair : x) {
    out.emplace_back(pair.first, pair.second);
  }
  return out;
}

inline mx::Device::DeviceType to_device_type(bool gpu) {
  return gpu ? mx::Device::gpu : mx::Device::cpu;
}

inline mx::Device to_device(DeviceCode x) {
  return mx::Device(to_device_type(x.gpu), x.index);
}

inline mx::Stream to_stream(StreamCode x) {
  return mx::Stream(x.index, to_device(x.device));
}

inline mx::ThreadLocalStream to_thread_local_stream(StreamCode x) {
  return mx::ThreadLocalStream(x.index, to_device(x.device));
}

inline mx::PrintOptions to_print_options(std::int32_t precision) {
  mx::PrintOptions options;
  options.precision = precision;
  return options;
}

template <typename Value, typename Item>
std::unordered_map<std::string, Value> to_map(rust::Slice<const rust::Str> keys, rust::Slice<const Item> values) {
  if (keys.size() != values.size()) {
    throw std::invalid_argument(
        std::to_string(keys.size()) + " names given for " + std::to_string(values.size()) + " values");
  }
  std::unordered_map<std::string, Value> out;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!out.emplace(std::string(keys[i]), Value(values[i])).second) {
      throw std::invalid_argument("the name '" + std::string(keys[i]) + "' is given twice");
    }
  }
  return out;
}

inline std::unordered_map<std::string, mx::GGUFMetaData> to_metadata(rust::Slice<const MetadataParts> entries) {
  std::unordered_map<std::string, mx::GGUFMetaData> out;
  for (const auto& entry : entries) {
    mx::GGUFMetaData value;
    switch (entry.kind) {
      case MetadataKind::Empty:
        break;
      case MetadataKind::Array:
        value = entry.arrays.at(0);
        break;
      case MetadataKind::Text:
        value = std::string(entry.texts.at(0));
        break;
      case MetadataKind::Texts:
        value = std::vector<std::string>(entry.texts.begin(), entry.texts.end());
        break;
    }
    out.insert_or_assign(std::string(entry.key), std::move(value));
  }
  return out;
}

// ---- out of MLX ----

inline rust::Vec<mx::array> from_arrays(std::vector<mx::array>&& x) {
  rust::Vec<mx::array> out;
  out.reserve(x.size());
  for (auto& a : x) {
    out.push_back(std::move(a));
  }
  return out;
}

// A std::pair or std::tuple of two.
template <typename Two>
ArrayPair from_pair(Two&& x) {
  return {std::move(std::get<0>(x)), std::move(std::get<1>(x))};
}

inline rust::Vec<std::int32_t> from_shape(const mx::Shape& x) {
  rust::Vec<std::int32_t> out;
  out.reserve(x.size());
  for (auto dimension : x) {
    out.push_back(dimension);
  }
  return out;
}

inline DtypeCode from_dtype(const mx::Dtype& x) {
  return static_cast<DtypeCode>(x.val());
}

inline DtypeKindCode from_kind(mx::Dtype::Kind x) {
  return static_cast<DtypeKindCode>(x);
}

inline DeviceCode from_device(const mx::Device& x) {
  return {x == mx::Device::gpu, x.index};
}

inline StreamCode from_stream(const mx::Stream& x) {
  return {x.index, from_device(x.device)};
}

inline OptStream from_optional(const std::optional<mx::Stream>& x) {
  return x ? OptStream{true, from_stream(*x)} : OptStream{false, {0, {false, 0}}};
}

inline rust::Vec<StreamCode> from_streams(const std::vector<mx::Stream>& x) {
  rust::Vec<StreamCode> out;
  for (const auto& stream : x) {
    out.push_back(from_stream(stream));
  }
  return out;
}

inline PrintCode from_print_format(const mx::PrintFormatter& x) {
  return {x.capitalize_bool, x.format_options.precision};
}

inline std::unique_ptr<mx::distributed::Group> from_group(mx::distributed::Group&& x) {
  return std::make_unique<mx::distributed::Group>(std::move(x));
}

inline ContractionParts from_contraction(const std::pair<std::vector<std::vector<int>>, std::string>& x) {
  ContractionParts out{{}, x.second};
  for (const auto& step : x.first) {
    Ints ints;
    for (int operand : step) {
      ints.values.push_back(operand);
    }
    out.steps.push_back(std::move(ints));
  }
  return out;
}

inline rust::Vec<FactParts> from_facts(
    const std::unordered_map<std::string, std::variant<std::string, std::size_t>>& x) {
  rust::Vec<FactParts> out;
  for (const auto& [key, value] : x) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      out.push_back({key, true, *text, 0});
    } else {
      out.push_back({key, false, {}, std::get<std::size_t>(value)});
    }
  }
  return out;
}

inline SafetensorsParts from_safetensors(mx::SafetensorsLoad&& x) {
  SafetensorsParts out;
  for (auto& [name, array] : x.first) {
    out.names.push_back(name);
    out.arrays.push_back(std::move(array));
  }
  for (const auto& [key, value] : x.second) {
    out.keys.push_back(key);
    out.values.push_back(value);
  }
  return out;
}

inline GgufParts from_gguf(mx::GGUFLoad&& x) {
  GgufParts out;
  for (auto& [name, array] : x.first) {
    out.names.push_back(name);
    out.arrays.push_back(std::move(array));
  }
  for (auto& [key, value] : x.second) {
    MetadataParts entry{key, MetadataKind::Empty, {}, {}};
    if (auto* array = std::get_if<mx::array>(&value)) {
      entry.kind = MetadataKind::Array;
      entry.arrays.push_back(std::move(*array));
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      entry.kind = MetadataKind::Text;
      entry.texts.push_back(*text);
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      entry.kind = MetadataKind::Texts;
      for (const auto& one : *texts) {
        entry.texts.push_back(one);
      }
    }
    out.metadata.push_back(std::move(entry));
  }
  return out;
}

// What `<<` prints.
template <typename T>
rust::String printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

} // namespace oxmlx

// What a rule that a caller wrote for a transform must give. MLX takes number and shapes on trust, and walks past the ends of its lists.
#pragma once

#include "mlx/array.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace oxmlx::rules {

using Arrays = std::vector<mlx::core::array>;
using Shapes = std::vector<mlx::core::Shape>;

inline Shapes shapes_of(const Arrays& arrays) {
  Shapes shapes;
  for (const auto& a : arrays) {
    shapes.push_back(a.shape());
  }
  return shapes;
}

inline std::string text(const mlx::core::Shape& shape) {
  std::string out = "[";
  for (auto n : shape) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(n);
  }
  return out + "]";
}

inline void same_number(const char* rule, std::size_t given, std::size_t wanted) {
  if (given != wanted) {
    throw std::invalid_argument(
        std::string("the ") + rule + " rule gave " + std::to_string(given) + " arrays for " + std::to_string(wanted));
  }
}

// One array for each of these shapes.
inline const Arrays& fitting(const char* rule, const Arrays& given, const Shapes& shapes) {
  same_number(rule, given.size(), shapes.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].shape() != shapes[i]) {
      throw std::invalid_argument(
          std::string("the ") + rule + " rule gave an array of shape " + text(given[i].shape()) + " for one of shape " +
          text(shapes[i]));
    }
  }
  return given;
}

// One array for each of these shapes, with the batch that `inputs` have along `axes` as one axis more, or without it for axis -1.
inline const std::pair<Arrays, std::vector<int>>& mapped(
    const std::pair<Arrays, std::vector<int>>& given,
    const Shapes& shapes,
    const Arrays& inputs,
    const std::vector<int>& axes) {
  same_number("vmap", given.first.size(), shapes.size());
  same_number("vmap", given.second.size(), shapes.size());
  int batch = -1;
  for (std::size_t i = 0; i < inputs.size() && i < axes.size(); ++i) {
    batch = axes[i] >= 0 ? inputs[i].shape(axes[i]) : batch;
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    auto shape = shapes[i];
    int axis = given.second[i];
    if (axis < -1 || axis > static_cast<int>(shape.size())) {
      throw std::invalid_argument(
          "the vmap rule gave the axis " + std::to_string(axis) + " for an output of shape " + text(shape));
    }
    if (axis >= 0) {
      shape.insert(shape.begin() + axis, batch);
    }
    fitting("vmap", {given.first[i]}, {shape});
  }
  return given;
}

} // namespace oxmlx::rules

// The trace of a function as plain data, through MLX's exporter with a callback.
#pragma once

#include "array_handle.h"
#include "trycatch.h"

#include "mlx/export.h"

namespace oxmlx::export_steps {

struct StepsClosure;
struct Step;

using Handle = mlx::core::array;
using Handles = rust::Slice<const Handle>;

rust::Vec<Step>
steps(rust::Box<StepsClosure> f, Handles args, rust::Slice<const rust::Str> names, Handles values, bool shapeless);

} // namespace oxmlx::export_steps

// Calls from C++ into Rust that may fail.
#pragma once

#include "rust/cxx.h"
#include "trycatch.h"

namespace oxmlx {

// A Rust failure on its way out through MLX keeps its name.
template <typename F>
auto closure_call(F&& f) {
  try {
    return f();
  } catch (const rust::Error& e) {
    throw ClosureFailed(e.what());
  }
}

} // namespace oxmlx

// How a C++ exception becomes a Rust `Err`: cxx calls this hook around every fallible bridge function.
//
// The first byte of the message names the exception's kind; `src/exception.rs` takes it off again. Nothing escapes: an exception
// that is no std::exception gets a kind of its own instead of std::terminate.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

namespace oxmlx {

// Thrown by the shim itself for a Rust closure's `Err` or panic on its way back out through MLX.
struct ClosureFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by the shim where MLX must not be entered (an array used on one of MLX's own worker threads, a missing device ...).
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by the shim where an allocation would fail: MLX itself writes to the null pointer then.
struct NoMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Tells the exception that is being handled. Out of line: hundreds of bridge functions share it.
template <typename Fail>
[[gnu::noinline, gnu::cold]] void tell_current_exception(Fail& fail) noexcept {
  auto tagged = [&fail](char kind, const char* what) {
    try {
      fail((std::string(1, kind) + what).c_str());
    } catch (...) {
      const char bare[] = {kind, '\0'};
      fail(bare);
    }
  };
  try {
    throw;
  } catch (const ClosureFailed& e) {
    tagged('C', e.what());
  } catch (const Refused& e) {
    tagged('D', e.what());
  } catch (const NoMemory& e) {
    tagged('M', e.what());
  } catch (const std::invalid_argument& e) {
    tagged('I', e.what());
  } catch (const std::out_of_range& e) {
    tagged('R', e.what());
  } catch (const std::overflow_error& e) {
    tagged('O', e.what());
  } catch (const std::bad_alloc& e) {
    tagged('M', e.what());
  } catch (const std::length_error& e) {
    tagged('M', e.what());
  } catch (const std::exception& e) {
    tagged('S', e.what());
  } catch (...) {
    tagged('U', "an exception that is no std::exception");
  }
}

} // namespace oxmlx

namespace rust::behavior {

template <typename Try, typename Fail>
static void trycatch(Try&& func, Fail&& fail) noexcept {
  try {
    func();
  } catch (...) {
    oxmlx::tell_current_exception(fail);
  }
}

} // namespace rust::behavior

#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "src/base/container/run_cache.h"
#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::python {

namespace nb = nanobind;

// Raises etude.Error.
[[noreturn]] void Raise(const Error& error);
// Issues `texts` as Python warnings of type etude.Warning; a filter may turn them into exceptions.
void Warn(const std::vector<std::string>& texts);

// Reacquires the GIL for `thread`, which PyEval_SaveThread returned. Does not return during
// interpreter shutdown: Python before 3.14 then unwinds the thread, which no C++ frame above would
// survive.
void TakeGil(PyThreadState* thread);

template <typename T>
T ValueOrRaise(Result<T> result) {
  if (!result) Raise(result.error());
  return *std::move(result);
}

// Runs `work(context)`, which returns a Result<T>, on a separate thread without the GIL. Its
// warnings become Python's, its error etude.Error. A signal that raises an exception in Python
// (Ctrl-C) stops the work at its next check of the context, and is passed on.
template <typename Work>
auto Call(Work work) {
  std::vector<std::string> warnings;
  std::atomic<bool> stop = false;
  RunContext context;
  context.warn = [&](std::string_view text) { warnings.emplace_back(text); };
  context.stop = &stop;
  RunCache cache;
  context.cache = &cache;
  using Outcome = decltype(work(std::as_const(context)));
  std::future<Outcome> future =
      std::async(std::launch::async, [&]() -> Outcome { return work(std::as_const(context)); });
  const auto wait = [&](std::chrono::milliseconds time) {
    PyThreadState* thread = PyEval_SaveThread();
    const bool ready = future.wait_for(time) == std::future_status::ready;
    TakeGil(thread);
    return ready;
  };
  constexpr std::chrono::milliseconds kBetweenSignals(50);
  while (!wait(kBetweenSignals)) {
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error interrupted;
    stop = true;
    while (!wait(std::chrono::hours(1))) {
    }
    throw interrupted;
  }
  Outcome outcome = [&]() -> Outcome {
    try {
      return future.get();
    } catch (const std::exception& error) {
      return MakeError(ErrorCode::kInternal, error.what());
    }
  }();
  Warn(warnings);
  return ValueOrRaise(std::move(outcome));
}

}  // namespace etude::python

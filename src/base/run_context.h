#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/limits.h"

namespace etude {

// Environment of a library function. `cli/` creates it and owns the sinks. Empty functions are
// silent. Not thread-safe.
struct RunContext {
  Limits limits;
  uint64_t seed = 0;
  // Reports a warning to the user ("trace.json: cut after node 41").
  std::function<void(std::string_view)> warn;
  // Reports `done` of `total` units of work (0: unknown).
  std::function<void(std::string_view what, uint64_t done, uint64_t total)> progress;

  // Cache of readers for this run; may be null. See base/run_cache.h.
  class RunCache* cache = nullptr;

  // Set by another thread to cancel the work; may be null. Readers check it often and return
  // kInterrupted.
  const std::atomic<bool>* stop = nullptr;

  // Returns a context without warnings, for data that is read again or also read elsewhere: each
  // warning is reported once.
  RunContext Unwarned() const {
    RunContext context = *this;
    context.warn = {};
    return context;
  }
  bool stopped() const { return stop != nullptr && *stop; }
  void Warn(std::string_view message) const {
    if (warn) warn(message);
  }
  void Progress(std::string_view what, uint64_t done, uint64_t total) const {
    if (progress) progress(what, done, total);
  }
};

}  // namespace etude

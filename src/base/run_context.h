#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/limits.h"

namespace etude {

// What a library function may use of the world around it; `cli/` makes it and owns the sinks.
// Empty functions are silent. Not thread-safe.
struct RunContext {
  Limits limits;
  uint64_t seed = 0;
  // A remark for the user that is not an error ("trace.json: cut after node 41").
  std::function<void(std::string_view)> warn;
  // Work done out of `total` (0: unknown), for people who wait.
  std::function<void(std::string_view what, uint64_t done, uint64_t total)> progress;

  // Where readers keep what they need again in this run; may be null. See base/run_cache.h.
  class RunCache* cache = nullptr;

  // Set from another thread when nobody waits for the result any more; may be null. Reading looks
  // at it often and ends with kInterrupted.
  const std::atomic<bool>* stop = nullptr;

  // For reading again what was read, or what another reads: warnings come once.
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

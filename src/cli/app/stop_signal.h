#pragma once

#include <signal.h>

#include <atomic>
#include <memory>

#include "src/base/result.h"

namespace etude {

// During its lifetime, a first SIGINT (Ctrl-C) or SIGTERM sets a flag instead of ending the
// process. One instance at a time. Forked processes share the flag.
class StopSignal {
 public:
  // Makes an instance. kUnavailable if shared memory cannot be allocated.
  static Result<std::unique_ptr<StopSignal>> Make();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns the flag, which is set after a signal; for RunContext::stop.
  const std::atomic<bool>* flag() const;
  // Signal handler for forked processes, which have lost the handlers.
  static void Note(int signal);

 private:
  StopSignal();

  struct sigaction interrupt_before_ {};
  struct sigaction end_before_ {};
};

}  // namespace etude

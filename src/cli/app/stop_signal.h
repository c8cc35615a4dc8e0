#pragma once

#include <signal.h>

#include <atomic>
#include <memory>

#include "src/base/result.h"

namespace etude {

// While one lives, a first SIGINT (Ctrl-C) or SIGTERM asks to stop instead of ending the process.
// One at a time. Processes that are forked meanwhile share the flag.
class StopSignal {
 public:
  // kUnavailable without memory to share.
  static Result<std::unique_ptr<StopSignal>> Make();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Set once a signal has come: for RunContext::stop.
  const std::atomic<bool>* flag() const;
  // What a forked process, which has lost the handlers, may set as one.
  static void Note(int signal);

 private:
  StopSignal();

  struct sigaction interrupt_before_ {};
  struct sigaction end_before_ {};
};

}  // namespace etude

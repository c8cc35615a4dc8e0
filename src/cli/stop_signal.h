#pragma once

#include <signal.h>

#include <atomic>

namespace etude {

// While one lives, a first SIGINT (Ctrl-C) or SIGTERM asks to stop instead of ending the process.
// One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Set once a signal has come: for RunContext::stop.
  const std::atomic<bool>* flag() const;

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction end_before_ {};
};

}  // namespace etude

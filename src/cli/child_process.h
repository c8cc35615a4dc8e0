#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// How a child process ended.
struct ChildEnd {
  bool killed = false;
  int value = 0;  // exit code, or the signal that killed it

  // The exit code that a shell would report.
  int exit_code() const { return killed ? 128 + value : value; }
};

// Runs `command` (found on the path) as a child in the foreground and waits for its end. It has our
// streams and our environment with `variables` set. Signals that ask a process to end or to reload,
// sent to us, are passed on; those of the terminal reach the child by themselves. kUnavailable if
// the command is not found or not executable, kIo if no process can be made. Not thread-safe: for
// the duration the signals are blocked in the calling thread.
Result<ChildEnd> RunChild(const std::vector<std::string>& command,
                          const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace etude

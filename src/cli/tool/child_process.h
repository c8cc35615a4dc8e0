#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Names and values of the environment.
using Variables = std::vector<std::pair<std::string, std::string>>;

// A command (found on the path) with our environment in which `variables` are set, made before a
// fork so that the child needs no memory to become it.
class ProgramImage {
 public:
  ProgramImage(const std::vector<std::string>& command, const Variables& variables);
  ProgramImage(const ProgramImage&) = delete;
  ProgramImage& operator=(const ProgramImage&) = delete;

  // Returns only if it cannot be done: errno.
  int Become() const;

 private:
  std::vector<std::string> words_;
  std::vector<std::string> entries_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
};

// How a child process ended.
struct ChildEnd {
  bool killed = false;
  int value = 0;  // exit code, or the signal that killed it

  // The exit code that a shell would report.
  int exit_code() const { return killed ? 128 + value : value; }
  // "exit code 1", "signal 9"; "" for a success.
  std::string failure() const;
};

// Runs `command` (found on the path) as a child in the foreground and waits for its end. It has our
// streams and our environment with `variables` set. Signals that ask a process to end or to reload,
// sent to us, are passed on; those of the terminal reach the child by themselves. kUnavailable if
// the command is not found or not executable, kIo if no process can be made. Not thread-safe: for
// the duration the signals are blocked in the calling thread.
Result<ChildEnd> RunChild(const std::vector<std::string>& command, const Variables& variables);

}  // namespace etude

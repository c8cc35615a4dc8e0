#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Names and values of environment variables.
using Variables = std::vector<std::pair<std::string, std::string>>;

// A command (searched on the path) with the current environment and `variables`, prepared before a
// fork so that the child needs no memory allocation to exec it.
class ProgramImage {
 public:
  ProgramImage(const std::vector<std::string>& command, const Variables& variables);
  ProgramImage(const ProgramImage&) = delete;
  ProgramImage& operator=(const ProgramImage&) = delete;

  // Executes the program; returns errno only on failure.
  int Become() const;

 private:
  std::vector<std::string> words_;
  std::vector<std::string> entries_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
};

// End of a child process.
struct ChildEnd {
  bool killed = false;
  int value = 0;  // exit code or signal

  // Returns the exit code that a shell would report.
  int exit_code() const { return killed ? 128 + value : value; }
  // Returns the code of an error of Etude that ends with this exit code; kInternal for others.
  ErrorCode error_code() const;
  // Returns "exit code 1" or "signal 9"; "" for success.
  std::string failure() const;
};

// Runs `command` (searched on the path) as a foreground child and waits for its end. It inherits
// streams and environment, with `variables` added. Signals to this process that ask it to end or
// reload are passed on; those from the terminal reach the child directly. kUnavailable for a
// missing or non-executable command, kIo if no process can be created. Not thread-safe: the signals
// are blocked in the calling thread meanwhile.
Result<ChildEnd> RunChild(const std::vector<std::string>& command, const Variables& variables);

}  // namespace etude

#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/tool/child_process.h"

namespace etude {

// Programs started by this process, with all of their descendants. During its lifetime, orphaned
// descendants become children of this process, and signals that ask it to end (and SIGCHLD) are
// handled here. Its destructor ends all descendants. One instance at a time; not thread-safe.
class ProcessTree {
 public:
  // Makes an instance. kUnavailable if the system lacks the required features.
  static Result<std::unique_ptr<ProcessTree>> Open();
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  struct Program {
    std::vector<std::string> command;  // searched on the path
    Variables variables;               // added to its environment
    int input = -1;                    // replaces standard input; -1: inherited
    int output = -1;                   // replaces standard output; -1: inherited
  };
  // Starts a program. `attach` is called with the new process before it becomes the program. If
  // this process is killed, the new one gets SIGTERM. kUnavailable for a missing or non-executable
  // command.
  Result<pid_t> Start(const Program& program, const std::function<void(pid_t)>& attach);

  // Returns how a started process ended; nullopt while it runs.
  std::optional<ChildEnd> ended(pid_t process) const;

  // Waits until one of `descriptors` is ready (see `revents`), a process ended, or the time is
  // over. kInterrupted after a signal that asks this process to end.
  Status Await(std::span<pollfd> descriptors, std::chrono::milliseconds time);
  // Waits for the end of `process`; returns false on timeout.
  Result<bool> AwaitEnd(pid_t process, std::chrono::milliseconds time);
  // Returns how a process that is about to end failed: "exit code 1". "" if it succeeded or does
  // not end soon.
  Result<std::string> HowItFailed(pid_t process);

  // Ends all descendants, with SIGTERM first and SIGKILL after some seconds.
  void EndAll();

 private:
  ProcessTree() = default;
  void TakeSignals();
  void Reap();
  bool EndAllBy(int signal);

  sigset_t mask_before_{};
  struct sigaction child_before_ {};
  int signals_ = -1;  // descriptor
  int asked_to_end_by_ = 0;
  std::map<pid_t, std::optional<ChildEnd>> started_;
};

}  // namespace etude

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

// Programs that run beside this one, with all that they start. While it lives, what their processes
// leave behind becomes our child, and signals that ask this process to end (and SIGCHLD) are taken
// here; when it goes, so does every process that descends from this one. One at a time; not
// thread-safe.
class ProcessTree {
 public:
  // kUnavailable if the system lacks what this needs.
  static Result<std::unique_ptr<ProcessTree>> Open();
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  struct Program {
    std::vector<std::string> command;  // found on the path
    Variables variables;               // set in its environment
    int input = -1;                    // takes the place of our standard input; -1: it has ours
    int output = -1;                   // likewise
  };
  // `attach` is called with the new process before it becomes the program. If this process is
  // killed the new one gets SIGTERM. kUnavailable if the command is not found or not executable.
  Result<pid_t> Start(const Program& program, const std::function<void(pid_t)>& attach);

  // How a started process ended; nullopt while it runs.
  std::optional<ChildEnd> ended(pid_t process) const;

  // Waits until one of `descriptors` is ready (`revents` says which), a process ended, or the time
  // is over. kInterrupted once a signal asked this process to end.
  Status Await(std::span<pollfd> descriptors, std::chrono::milliseconds time);
  // Waits for the end of `process`; false if the time is over before.
  Result<bool> AwaitEnd(pid_t process, std::chrono::milliseconds time);
  // How a process that has said its last word failed: "exit code 1". "" if it did not, or if it
  // does not end soon.
  Result<std::string> HowItFailed(pid_t process);

  // Ends all descendants: first kindly, then not. Those that need long to end get some seconds.
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

#include "src/cli/tool/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "src/base/exit_code.h"

namespace etude {
namespace {

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// Blocks the forwarded signals and SIGCHLD, and ensures that ended children can be waited for.
class SignalGuard {
 public:
  SignalGuard() {
    sigemptyset(&signals_);
    for (const int signal : kForwarded) sigaddset(&signals_, signal);
    sigaddset(&signals_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals_, &mask_before_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &child_before_);
  }
  ~SignalGuard() { Undo(); }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  const sigset_t& signals() const { return signals_; }
  // Restores signals in the child, before it execs.
  void Undo() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

 private:
  sigset_t signals_{};
  sigset_t mask_before_{};
  struct sigaction child_before_ {};
};

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const Variables& variables) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [other, value] : variables) replaced = replaced || name == other;
    if (!replaced) entries.emplace_back(text);
  }
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

// Waits for the end of `child` and forwards signals meanwhile.
ChildEnd Wait(pid_t child, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    if (sigwaitinfo(&signals, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      // Signals from the terminal go to the whole foreground group, including the child.
      if (info.si_code != SI_KERNEL) kill(child, info.si_signo);
      continue;
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) != child) continue;
    if (WIFEXITED(status)) return {.killed = false, .value = WEXITSTATUS(status)};
    if (WIFSIGNALED(status)) return {.killed = true, .value = WTERMSIG(status)};
  }
}

}  // namespace

ProgramImage::ProgramImage(const std::vector<std::string>& command, const Variables& variables)
    : words_(command),
      entries_(Environment(variables)),
      argv_(Pointers(words_)),
      envp_(Pointers(entries_)) {}

int ProgramImage::Become() const {
  execvpe(argv_[0], argv_.data(), envp_.data());
  return errno;
}

std::string ChildEnd::failure() const {
  if (killed) return "signal " + std::to_string(value);
  return value == 0 ? "" : "exit code " + std::to_string(value);
}

ErrorCode ChildEnd::error_code() const {
  if (killed) return ErrorCode::kInternal;
  for (const ErrorCode code : {ErrorCode::kUsage, ErrorCode::kBadInput, ErrorCode::kUnavailable,
                               ErrorCode::kIo, ErrorCode::kInterrupted}) {
    if (static_cast<int>(ExitCodeOf(code)) == value) return code;
  }
  return ErrorCode::kInternal;
}

Result<ChildEnd> RunChild(const std::vector<std::string>& command, const Variables& variables) {
  const ProgramImage program(command, variables);

  // The child reports a failed exec through the pipe.
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return MakeError(ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno));
  }
  const SignalGuard guard;
  const pid_t child = fork();
  if (child < 0) {
    const int reason = errno;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return MakeError(ErrorCode::kIo, std::string("fork: ") + std::strerror(reason));
  }
  if (child == 0) {
    guard.Undo();
    const int reason = program.Become();
    [[maybe_unused]] const ssize_t sent = write(pipe_ends[1], &reason, sizeof(reason));
    _exit(127);
  }
  close(pipe_ends[1]);
  int reason = 0;
  ssize_t received = 0;
  do {
    received = read(pipe_ends[0], &reason, sizeof(reason));
  } while (received < 0 && errno == EINTR);
  close(pipe_ends[0]);
  const ChildEnd end = Wait(child, guard.signals());
  if (received == static_cast<ssize_t>(sizeof(reason))) {
    return Unavailable(command[0] + ": " + std::strerror(reason));
  }
  return end;
}

}  // namespace etude

#include "src/cli/torch/rank_processes.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/guarded.h"

namespace etude {
namespace {

// Outcome of a rank's work, in memory shared with the parent process.
struct Outcome {
  enum class Kind : uint8_t { kNone, kAnswer, kError };
  Kind kind = Kind::kNone;  // written last
  ExitCode answer = ExitCode::kOk;
  ErrorCode error = ErrorCode::kInternal;
  char message[4096] = {};
};

class SharedOutcomes {
 public:
  explicit SharedOutcomes(size_t count) : bytes_(count * sizeof(Outcome)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    outcomes_ = {static_cast<Outcome*>(memory), count};
    std::uninitialized_value_construct(outcomes_.begin(), outcomes_.end());
  }
  ~SharedOutcomes() {
    if (!outcomes_.empty()) munmap(outcomes_.data(), bytes_);
  }
  SharedOutcomes(const SharedOutcomes&) = delete;
  SharedOutcomes& operator=(const SharedOutcomes&) = delete;

  std::span<Outcome> get() const { return outcomes_; }

 private:
  size_t bytes_;
  std::span<Outcome> outcomes_;
};

void Note(const Result<ExitCode>& result, Outcome& outcome) {
  if (result) {
    outcome.answer = *result;
    outcome.kind = Outcome::Kind::kAnswer;
    return;
  }
  outcome.error = result.error().code;
  const std::string& message = result.error().message;
  message.copy(outcome.message, std::min(message.size(), sizeof outcome.message - 1));
  outcome.kind = Outcome::Kind::kError;
}

// Runs a rank's process; never returns. A rank that is done or has failed stops and is ended by its
// parent, so that the others do not see closed connections.
[[noreturn]] void BeRank(bool lead, const std::function<Result<ExitCode>()>& work, Outcome& outcome,
                         const sigset_t& usual) {
  signal(SIGTERM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &usual, nullptr);
  if (!lead) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  // An escaping exception would run the parent's code again.
  Note(Guarded(work), outcome);
  std::fflush(nullptr);
  while (true) raise(SIGSTOP);
}

// Children of a run, by rank.
class Children {
  struct Child {
    pid_t pid;
    std::optional<int> status;  // set after its end
  };

 public:
  Children(std::span<const int64_t> ranks, std::span<const Outcome> outcomes)
      : ranks_(ranks), outcomes_(outcomes) {}

  void Add(pid_t child) { children_.push_back({child, std::nullopt}); }

  // Waits until a child has died or failed, or the lead is done.
  void Await(size_t lead) {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WUNTRACED);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return;
      const auto child = std::ranges::find(children_, pid, &Child::pid);
      if (child == children_.end()) continue;  // started by the program that became this one
      if (!WIFSTOPPED(status)) {
        child->status = status;
        return;
      }
      const auto rank = static_cast<size_t>(child - children_.begin());
      if (outcomes_[rank].kind == Outcome::Kind::kError) return;
      if (outcomes_[rank].kind == Outcome::Kind::kAnswer && rank == lead) return;
    }
  }

  // Ends the lead last, because it hosts the ranks' store: the others have no time to report its
  // loss.
  void EndAll(size_t lead) {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      if (rank != lead) Signal(children_[rank]);
    }
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      if (rank != lead) WaitFor(children_[rank]);
    }
    if (lead >= children_.size()) return;
    Signal(children_[lead]);
    WaitFor(children_[lead]);
  }

  static void Signal(const Child& child) {
    if (child.status) return;
    kill(child.pid, SIGTERM);
    kill(child.pid, SIGCONT);
  }
  static void WaitFor(Child& child) {
    int status = 0;
    while (!child.status && waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!child.status) child.status = status;
  }

  // Returns why the ranks were ended. A died process comes first, because it makes the others fail.
  Error Cause() const {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      const int status = children_[rank].status.value_or(0);
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) continue;
      return {
          ErrorCode::kInternal,
          fmt::format("rank {}: the process died: {}", ranks_[rank],
                      WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                          : "exit code " + std::to_string(WEXITSTATUS(status)))};
    }
    const auto failed = std::ranges::find(outcomes_, Outcome::Kind::kError, &Outcome::kind);
    if (failed == outcomes_.end()) return {ErrorCode::kInternal, "the ranks were stopped"};
    return {failed->error,
            fmt::format("rank {}: {}", ranks_[static_cast<size_t>(failed - outcomes_.begin())],
                        failed->message)};
  }

 private:
  std::span<const int64_t> ranks_;
  std::span<const Outcome> outcomes_;
  std::vector<Child> children_;
};

}  // namespace

Result<ExitCode> RunRanks(const std::vector<int64_t>& ranks, int64_t lead,
                          const std::function<Result<ExitCode>(int64_t rank)>& work) {
  const SharedOutcomes shared(ranks.size());
  const std::span<Outcome> outcomes = shared.get();
  if (outcomes.empty()) return Unavailable("cannot allocate memory for the ranks");
  Children children(ranks, outcomes);
  const auto lead_at = static_cast<size_t>(std::ranges::find(ranks, lead) - ranks.begin());
  const pid_t parent = getpid();
  std::fflush(nullptr);
  // A rank that is ended before it has left the parent's handler of the signal would go on.
  sigset_t ending;
  sigset_t usual;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigprocmask(SIG_BLOCK, &ending, &usual);
  for (size_t i = 0; i < ranks.size(); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(0);
      BeRank(
          i == lead_at, [&] { return work(ranks[i]); }, outcomes[i], usual);
    }
    if (child < 0) {
      const std::string reason = std::strerror(errno);
      children.EndAll(lead_at);
      sigprocmask(SIG_SETMASK, &usual, nullptr);
      return Unavailable(fmt::format("cannot start the process of rank {}: {}", ranks[i], reason));
    }
    children.Add(child);
  }
  sigprocmask(SIG_SETMASK, &usual, nullptr);
  children.Await(lead_at);
  children.EndAll(lead_at);
  const Outcome& answer = outcomes[lead_at];
  if (answer.kind == Outcome::Kind::kAnswer) return answer.answer;
  return tl::unexpected<Error>(children.Cause());
}

void BeginSession() { setsid(); }

Status PinToShare(size_t place, size_t count) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return Unavailable(std::string("processors: ") + std::strerror(errno));
  }
  std::vector<size_t> processors;
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  const size_t share = processors.size() / count;
  if (share == 0) {
    return Unavailable(fmt::format(
        "--pin: found {} ranks on {} processors, expected at least one processor per rank", count,
        processors.size()));
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  for (size_t i = place * share; i < (place + 1) * share; ++i) CPU_SET(processors[i], &own);
  if (sched_setaffinity(0, sizeof own, &own) != 0) {
    return Unavailable(std::string("--pin: ") + std::strerror(errno));
  }
  return {};
}

}  // namespace etude

#include "src/cli/rank_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
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

namespace etude {
namespace {

// What became of a rank's work, in memory shared with the process that started it.
struct Outcome {
  enum class Kind : uint8_t { kNone, kAnswer, kError };
  Kind kind = Kind::kNone;  // written last
  ExitCode answer = ExitCode::kOk;
  ErrorCode error = ErrorCode::kInternal;
  int64_t failed_at = 0;  // monotonic clock, nanoseconds
  char message[2048] = {};
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
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  outcome.failed_at = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  outcome.error = result.error().code;
  const std::string& message = result.error().message;
  message.copy(outcome.message, std::min(message.size(), sizeof outcome.message - 1));
  outcome.kind = Outcome::Kind::kError;
}

// What a rank's process does; it never returns from here.
[[noreturn]] void BeRank(bool lead, const std::function<Result<ExitCode>()>& work,
                         Outcome& outcome) {
  signal(SIGTERM, SIG_DFL);
  if (!lead) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  const Result<ExitCode> result = work();
  std::fflush(nullptr);
  Note(result, outcome);
  // The lead may still need the connections of the others.
  while (result && !lead) pause();
  _exit(0);
}

// The children of a run, by rank.
class Children {
 public:
  explicit Children(std::span<const Outcome> outcomes) : outcomes_(outcomes) {}

  void Add(pid_t child) { children_.push_back({child, std::nullopt}); }

  // Waits until some child has ended.
  void AwaitOne() {
    int status = 0;
    pid_t ended = -1;
    while ((ended = waitpid(-1, &status, 0)) < 0 && errno == EINTR) {
    }
    Ended(ended, status);
  }

  void EndAll() {
    for (const Child& child : children_) {
      if (!child.status) kill(child.pid, SIGTERM);
    }
    for (const Child& child : children_) {
      int status = 0;
      while (!child.status && waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
      }
      if (!child.status) Ended(child.pid, status);
    }
  }

  // The failure that came first. A process that died caused what the others ran into.
  Error Cause() const {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      const int status = children_[rank].status.value_or(0);
      const bool died = WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM;
      if (died || (WIFEXITED(status) && outcomes_[rank].kind == Outcome::Kind::kNone)) {
        return {ErrorCode::kInternal,
                fmt::format("rank {}: the process died: {}", rank,
                            died ? strsignal(WTERMSIG(status)) : "it left without an answer")};
      }
    }
    const Outcome* first = nullptr;
    for (const Outcome& outcome : outcomes_) {
      if (outcome.kind != Outcome::Kind::kError) continue;
      if (first == nullptr || outcome.failed_at < first->failed_at) first = &outcome;
    }
    if (first == nullptr) return {ErrorCode::kInternal, "the ranks were ended"};
    return {first->error, fmt::format("rank {}: {}", first - outcomes_.data(), first->message)};
  }

 private:
  struct Child {
    pid_t pid;
    std::optional<int> status;  // once it has ended
  };

  void Ended(pid_t pid, int status) {
    const auto child = std::ranges::find(children_, pid, &Child::pid);
    if (child != children_.end()) child->status = status;
  }

  std::span<const Outcome> outcomes_;
  std::vector<Child> children_;
};

}  // namespace

Result<ExitCode> RunRanks(int64_t count, int64_t lead,
                          const std::function<Result<ExitCode>(int64_t rank)>& work) {
  const SharedOutcomes shared(static_cast<size_t>(count));
  const std::span<Outcome> outcomes = shared.get();
  if (outcomes.empty()) return MakeError(ErrorCode::kUnavailable, "no memory for the ranks");
  Children children(outcomes);
  const pid_t parent = getpid();
  std::fflush(nullptr);
  for (int64_t rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(0);
      BeRank(
          rank == lead, [&] { return work(rank); }, outcomes[static_cast<size_t>(rank)]);
    }
    if (child < 0) {
      const std::string reason = std::strerror(errno);
      children.EndAll();
      return MakeError(ErrorCode::kUnavailable,
                       fmt::format("no process for rank {}: {}", rank, reason));
    }
    children.Add(child);
  }
  // The first to end is the lead, or one that failed.
  children.AwaitOne();
  children.EndAll();
  const Outcome& answer = outcomes[static_cast<size_t>(lead)];
  if (answer.kind == Outcome::Kind::kAnswer) return answer.answer;
  return tl::unexpected<Error>(children.Cause());
}

}  // namespace etude

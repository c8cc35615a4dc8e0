#include "src/cli/record/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace etude {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr milliseconds kTerminationGrace{5000};
constexpr milliseconds kTreeLook{20};
constexpr milliseconds kLastWords{
    3000};  // maximum time between the last message and the end of a process

milliseconds Until(Clock::time_point when) {
  return std::max(milliseconds(0),
                  std::chrono::duration_cast<milliseconds>(when - Clock::now()) + milliseconds(1));
}

// Returns the parent of a process; nullopt if it has gone or is a zombie.
std::optional<pid_t> ParentOf(pid_t process) {
  char text[1024];
  std::FILE* file = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "r");
  if (file == nullptr) return std::nullopt;
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  // "4711 (name) S 4710 …", where the name may contain anything.
  const char* name_end = std::strrchr(text, ')');
  char state = 0;
  int parent = 0;
  if (name_end == nullptr || std::sscanf(name_end + 1, " %c %d", &state, &parent) != 2) {
    return std::nullopt;
  }
  if (state == 'Z' || state == 'X') return std::nullopt;
  return parent;
}

// Returns all living descendants of this process, by number.
std::vector<pid_t> Descendants() {
  std::unordered_map<pid_t, pid_t> parents;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return {};
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name(entry->d_name);
    pid_t process = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (const auto parent = ParentOf(process)) parents[process] = *parent;
  }
  closedir(folder);
  const pid_t self = getpid();
  std::vector<pid_t> found;
  for (const auto& [process, parent] : parents) {
    pid_t above = parent;
    // Numbers may be reused while the folder is read, so the depth is bounded.
    for (size_t depth = 0; depth < parents.size() && above != self; ++depth) {
      const auto next = parents.find(above);
      if (next == parents.end()) break;
      above = next->second;
    }
    if (above == self) found.push_back(process);
  }
  std::ranges::sort(found);
  return found;
}

void Replace(int descriptor, int wanted) {
  if (wanted >= 0) dup2(wanted, descriptor);
}

}  // namespace

Result<std::unique_ptr<ProcessTree>> ProcessTree::Open() {
  std::unique_ptr<ProcessTree> tree(new ProcessTree);
  sigset_t signals{};
  sigemptyset(&signals);
  for (const int signal : kEnding) {
    struct sigaction now {};
    // Signals that the parent ignores (nohup) stay ignored.
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
  }
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, &tree->mask_before_);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &tree->child_before_);
  tree->signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (tree->signals_ < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Unavailable(std::string("starting programs: ") + std::strerror(errno));
  }
  return tree;
}

ProcessTree::~ProcessTree() {
  EndAll();
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  if (signals_ >= 0) close(signals_);
  sigaction(SIGCHLD, &child_before_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Result<pid_t> ProcessTree::Start(const Program& program, const std::function<void(pid_t)>& attach) {
  const ProgramImage image(program.command, program.variables);
  // One pipe tells the child to continue; the other reports its failure.
  std::array<int, 2> go{}, failure{};
  const auto pipe_error = [] {
    return MakeError(ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno));
  };
  if (pipe2(go.data(), O_CLOEXEC) != 0) return pipe_error();
  if (pipe2(failure.data(), O_CLOEXEC) != 0) {
    const auto error = pipe_error();
    for (const int end : go) close(end);
    return error;
  }
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    close(go[1]);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    char word = 0;
    if (getppid() != self || read(go[0], &word, 1) != 1) _exit(127);
    Replace(STDIN_FILENO, program.input);
    Replace(STDOUT_FILENO, program.output);
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    const int reason = image.Become();
    [[maybe_unused]] const ssize_t sent = write(failure[1], &reason, sizeof reason);
    _exit(127);
  }
  const int fork_reason = errno;
  close(go[0]);
  close(failure[1]);
  int reason = 0;
  ssize_t received = 0;
  if (child > 0) {
    started_[child] = std::nullopt;
    if (attach) attach(child);
    [[maybe_unused]] const ssize_t sent = write(go[1], "g", 1);
    do {
      received = read(failure[0], &reason, sizeof reason);
    } while (received < 0 && errno == EINTR);
  }
  close(go[1]);
  close(failure[0]);
  if (child < 0) {
    return Unavailable(std::string("fork: ") + std::strerror(fork_reason));
  }
  if (received == sizeof reason) {
    return Unavailable(program.command[0] + ": " + std::strerror(reason));
  }
  return child;
}

std::optional<ChildEnd> ProcessTree::ended(pid_t process) const {
  const auto found = started_.find(process);
  return found == started_.end() ? std::nullopt : found->second;
}

Status ProcessTree::Await(std::span<pollfd> descriptors, milliseconds time) {
  std::vector<pollfd> all(descriptors.begin(), descriptors.end());
  all.push_back({.fd = signals_, .events = POLLIN, .revents = 0});
  const int ready = poll(all.data(), all.size(), static_cast<int>(time.count()));
  for (size_t i = 0; i < descriptors.size(); ++i) {
    descriptors[i].revents = ready > 0 ? all[i].revents : short{0};
  }
  if (ready > 0 && all.back().revents != 0) TakeSignals();
  if (asked_to_end_by_ == 0) return {};
  return MakeError(ErrorCode::kInterrupted,
                   std::string("ended by a signal: ") + strsignal(asked_to_end_by_));
}

Result<bool> ProcessTree::AwaitEnd(pid_t process, milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!ended(process)) {
    const milliseconds left = Until(deadline);
    if (Clock::now() >= deadline) return false;
    ETUDE_RETURN_IF_ERROR(Await({}, left));
  }
  return true;
}

Result<std::string> ProcessTree::HowItFailed(pid_t process) {
  ETUDE_RETURN_IF_ERROR(AwaitEnd(process, kLastWords));
  const auto end = ended(process);
  return end ? end->failure() : "";
}

void ProcessTree::EndAll() {
  if (!EndAllBy(SIGTERM)) EndAllBy(SIGKILL);
  Reap();
}

// Returns whether all descendants ended within the grace time.
bool ProcessTree::EndAllBy(int signal) {
  const auto deadline = Clock::now() + kTerminationGrace;
  std::vector<pid_t> told;
  while (true) {
    Reap();
    const std::vector<pid_t> left = Descendants();
    if (left.empty()) return true;
    if (Clock::now() >= deadline) return false;
    for (const pid_t process : left) {
      if (std::ranges::count(told, process) != 0) continue;
      told.push_back(process);
      kill(process, signal);
      kill(process, SIGCONT);
    }
    pollfd signals{.fd = signals_, .events = POLLIN, .revents = 0};
    if (poll(&signals, 1, static_cast<int>(kTreeLook.count())) > 0) TakeSignals();
  }
}

void ProcessTree::TakeSignals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) asked_to_end_by_ = static_cast<int>(info.ssi_signo);
  }
  Reap();
}

void ProcessTree::Reap() {
  int status = 0;
  for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = started_.find(process);
    if (found == started_.end()) continue;  // an orphaned descendant
    if (WIFEXITED(status)) found->second = ChildEnd{.killed = false, .value = WEXITSTATUS(status)};
    if (WIFSIGNALED(status)) found->second = ChildEnd{.killed = true, .value = WTERMSIG(status)};
  }
}

}  // namespace etude

#include "src/replay/trial_child.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "src/base/container/guarded.h"
#include "src/base/open_file.h"

namespace etude {

Result<std::string> RunInChild(const std::function<Result<std::string>(const Announce&)>& work,
                               std::optional<ChildDeath>& died) {
  died.reset();
  int ends[2];
  if (pipe(ends) != 0) return Unavailable(std::strerror(errno));
  void* page =
      mmap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* position = page == MAP_FAILED ? nullptr : static_cast<volatile uint32_t*>(page);
  if (position != nullptr) *position = UINT32_MAX;
  std::fflush(nullptr);
  const pid_t child = position == nullptr ? -1 : fork();
  if (child < 0) {
    const std::string reason = std::strerror(errno);
    close(ends[0]);
    close(ends[1]);
    if (position != nullptr) munmap(page, sizeof(uint32_t));
    return Unavailable("cannot start the trial run: " + reason);
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    // No error may escape the child; only its answer may.
    const Result<std::string> result =
        Guarded([&] { return work([&](uint32_t at) { *position = at; }); });
    // The first letter tags a result, or an error code and message.
    if (result) {
      WriteAll(ends[1], "R" + *result);
    } else {
      WriteAll(ends[1],
               "E" +
                   std::string(1, static_cast<char>('0' + static_cast<int>(result.error().code))) +
                   result.error().message);
    }
    close(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  const std::string answer = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const uint32_t last = *position;
  munmap(page, sizeof(uint32_t));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !answer.empty()) {
    if (answer[0] == 'R') return answer.substr(1);
    const int code = answer.size() > 1 ? answer[1] - '0' : -1;
    const bool is_known = code >= 0 && code <= static_cast<int>(ErrorCode::kInternal);
    return MakeError(is_known ? static_cast<ErrorCode>(code) : ErrorCode::kInternal,
                     answer.substr(std::min<size_t>(2, answer.size())));
  }
  const std::string how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                              : "exit code " + std::to_string(WEXITSTATUS(status));
  died = ChildDeath{.position = last, .how = how};
  return MakeError(ErrorCode::kInternal, "the trial run died: " + how);
}

}  // namespace etude

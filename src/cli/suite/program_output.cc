#include "src/cli/suite/program_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include <fmt/format.h>

#include "src/cli/record/process_tree.h"

namespace etude {

Result<ProgramOutput> RunProgram(const std::vector<std::string>& command) {
  const int output = memfd_create("output", MFD_CLOEXEC);
  if (output < 0) return Unavailable("cannot make memory for the output of a program");
  const auto run = [&]() -> Result<ProgramOutput> {
    ETUDE_ASSIGN_OR_RETURN(const auto tree, ProcessTree::Open());
    ETUDE_ASSIGN_OR_RETURN(const pid_t process,
                           tree->Start({.command = command, .output = output}, [](pid_t) {}));
    while (!tree->ended(process)) {
      ETUDE_RETURN_IF_ERROR(tree->AwaitEnd(process, std::chrono::hours(1)));
    }
    ProgramOutput ran{.end = *tree->ended(process)};
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = pread(output, part.data(), part.size(),
                                         static_cast<off_t>(ran.text.size()))) > 0;) {
      ran.text.append(part.data(), static_cast<size_t>(size));
    }
    return ran;
  };
  auto ran = run();
  close(output);
  return ran;
}

Status RunPart(const TaskLoop& loop, const std::vector<std::string>& command, std::string_view part,
               bool may_say_no) {
  loop.Say(part);
  ETUDE_ASSIGN_OR_RETURN(const ProgramOutput ran, RunProgram(command));
  const int code = ran.end.exit_code();
  if (code == 0 || (may_say_no && code == static_cast<int>(ExitCode::kNo))) return {};
  if (!ran.text.empty()) loop.Complain(ran.text);
  return MakeError(ran.end.error_code(), fmt::format("{} failed ({})", part, ran.end.failure()));
}

}  // namespace etude

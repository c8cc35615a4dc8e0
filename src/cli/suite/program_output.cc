#include "src/cli/suite/program_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>

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

}  // namespace etude

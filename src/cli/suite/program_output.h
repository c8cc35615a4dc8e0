#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/task_loop.h"
#include "src/cli/tool/child_process.h"

namespace etude {

// How a program ended, and its standard output.
struct ProgramOutput {
  ChildEnd end;
  std::string text;
};

// Runs a program and returns its standard output. kUnavailable for a missing command.
Result<ProgramOutput> RunProgram(const std::vector<std::string>& command);

// Says `part` and runs a program as this part of the work on the loop's current task. If it fails,
// shows its output and returns an error with the code of its exit code. `may_say_no`: exit code 1
// is no failure.
Status RunPart(const TaskLoop& loop, const std::vector<std::string>& command, std::string_view part,
               bool may_say_no = false);

}  // namespace etude

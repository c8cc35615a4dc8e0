#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/tool/child_process.h"

namespace etude {

// How a program ended, and its standard output.
struct ProgramOutput {
  ChildEnd end;
  std::string text;
};

// Runs a program and returns its standard output. kUnavailable for a missing command.
Result<ProgramOutput> RunProgram(const std::vector<std::string>& command);

}  // namespace etude

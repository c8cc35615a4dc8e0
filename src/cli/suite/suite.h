#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/app/command.h"

namespace etude {

// In the overview.
inline constexpr std::string_view kSuiteSummary =
    "AIBench's training tasks: list, run to a target quality, report, compare";

// The commands of `etude suite`. Those that train are of `etude-torch`: here they stand in the
// overview, and say that it is missing.
std::vector<std::unique_ptr<Command>> SuiteCommands();
// Whether `etude-torch` has the command: "run", "calibrate".
bool IsTrainingCommand(std::string_view name);

}  // namespace etude

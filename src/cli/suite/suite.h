#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/app/command.h"

namespace etude {

// Summary in the overview.
inline constexpr std::string_view kSuiteSummary =
    "AIBench training tasks: list, run to a target quality, report, compare";

// Returns the commands of `etude suite`. Training commands belong to `etude-torch`; here they are
// listed in the overview and report that it is missing.
std::vector<std::unique_ptr<Command>> SuiteCommands();
// Returns whether `etude-torch` has the command: "run", "calibrate".
bool IsTrainingCommand(std::string_view name);

}  // namespace etude

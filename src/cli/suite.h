#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/command.h"

namespace etude {

// For `etude` too, which shows the command that `etude-torch` runs.
inline constexpr std::string_view kSuiteSummary =
    "AIBench's training tasks: list, run to a target quality, report, compare";

// The commands of `etude suite`.
std::vector<std::unique_ptr<Command>> SuiteCommands();

}  // namespace etude

#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// For `etude` too, which shows the command that `etude-torch` runs.
inline constexpr std::string_view kSuiteRunSummary = "train tasks and time them";

// Trains tasks of the suite and times them.
std::unique_ptr<Command> MakeSuiteRunCommand();

}  // namespace etude

#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// For `etude` too, which shows the command that `etude-torch` runs.
inline constexpr std::string_view kSuiteCalibrateSummary =
    "find targets on some seeds and check them on others";

// Finds and checks the targets of the suite's tasks.
std::unique_ptr<Command> MakeSuiteCalibrateCommand();

}  // namespace etude

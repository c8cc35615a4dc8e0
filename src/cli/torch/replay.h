#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// For `etude` too, which shows the command that `etude-torch` runs.
inline constexpr std::string_view kReplaySummary =
    "run a recorded step's operators again and compare the time";

std::unique_ptr<Command> MakeReplayCommand();

}  // namespace etude

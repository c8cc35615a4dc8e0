#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Writes traces as timelines for viewers.
std::unique_ptr<Command> MakeTimelineCommand();

}  // namespace etude

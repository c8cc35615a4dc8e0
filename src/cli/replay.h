#pragma once

#include <memory>

#include "src/cli/command.h"

namespace etude {

// Runs a recorded step's operators again.
std::unique_ptr<Command> MakeReplayCommand();

}  // namespace etude

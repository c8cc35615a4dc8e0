#pragma once

#include <memory>

#include "src/cli/command.h"

namespace etude {

// Runs a recorded step's operators again and compares the time.
std::unique_ptr<Command> MakeReplayCommand();

}  // namespace etude

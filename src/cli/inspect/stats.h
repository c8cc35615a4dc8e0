#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Says what traces are made of: operators, modules, lanes, communication.
std::unique_ptr<Command> MakeStatsCommand();

}  // namespace etude

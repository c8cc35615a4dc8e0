#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Says where the time of devices went, per rank and step.
std::unique_ptr<Command> MakeBreakdownCommand();

}  // namespace etude

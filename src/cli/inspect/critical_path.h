#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Says which chain of dependent nodes took the longest, per rank.
std::unique_ptr<Command> MakeCriticalPathCommand();

}  // namespace etude

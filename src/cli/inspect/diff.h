#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Says how two traces, or two jobs rank by rank, differ in structure and time.
std::unique_ptr<Command> MakeDiffCommand();

}  // namespace etude

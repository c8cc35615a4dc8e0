#pragma once

#include <memory>

#include "src/cli/command.h"

namespace etude {

// Finds and checks the targets of the suite's tasks.
std::unique_ptr<Command> MakeSuiteCalibrateCommand();

}  // namespace etude

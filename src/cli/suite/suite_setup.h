#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Gets the data sets of the suite's small tasks.
std::unique_ptr<Command> MakeSuiteSetupCommand();

}  // namespace etude

#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Shows the tasks of the suite.
std::unique_ptr<Command> MakeSuiteListCommand();

}  // namespace etude

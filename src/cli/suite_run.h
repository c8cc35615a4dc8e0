#pragma once

#include <memory>

#include "src/cli/command.h"

namespace etude {

// Trains tasks of the suite and times them.
std::unique_ptr<Command> MakeSuiteRunCommand();

}  // namespace etude

#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Ranks systems by runs of the suite.
std::unique_ptr<Command> MakeSuiteCompareCommand();

}  // namespace etude

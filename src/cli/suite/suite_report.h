#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Shows runs of the suite that are kept.
std::unique_ptr<Command> MakeSuiteReportCommand();

}  // namespace etude

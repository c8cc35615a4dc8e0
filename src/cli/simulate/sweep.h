#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Simulates many machines and jobs.
std::unique_ptr<Command> MakeSweepCommand();

}  // namespace etude

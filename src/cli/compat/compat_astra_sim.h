#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"

namespace etude {

// Runs as a replacement for ASTRA-sim's analytical programs with these arguments;
// --congestion=aware selects the congestion-aware one. kNo, with a message, for a deadlock.
Result<ExitCode> RunAstraSim(std::vector<std::string> args, const Console& console);

}  // namespace etude

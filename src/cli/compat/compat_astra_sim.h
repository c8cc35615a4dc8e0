#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"

namespace etude {

// Stands in for ASTRA-sim's analytical programs with these arguments; --congestion=aware is that of
// congested networks. kNo: some ranks wait for ever, which is said.
Result<ExitCode> RunAstraSim(std::vector<std::string> args, const Console& console);

}  // namespace etude

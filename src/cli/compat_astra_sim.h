#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/command.h"

namespace etude {

// Stands in for ASTRA-sim's analytical programs with these arguments; --congestion=aware is that of
// congested networks.
Status RunAstraSim(std::vector<std::string> args, const Console& console);

}  // namespace etude

#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"

namespace etude {

// Runs as a replacement for STAGE's main.py with these arguments.
Status RunStage(std::vector<std::string> args, const Console& console);

}  // namespace etude

#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Puts the original step of a capture beside its replay.
std::unique_ptr<Command> MakeCompareCommand();

}  // namespace etude

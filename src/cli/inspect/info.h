#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Says what a trace file or a capture folder is, and gives its first figures.
std::unique_ptr<Command> MakeInfoCommand();

}  // namespace etude

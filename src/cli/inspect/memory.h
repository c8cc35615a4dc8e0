#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Says how much memory a step uses, and what holds it at the peak, per rank and device.
std::unique_ptr<Command> MakeMemoryCommand();

}  // namespace etude

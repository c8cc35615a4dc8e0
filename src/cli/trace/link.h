#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Joins host traces with device traces.
std::unique_ptr<Command> MakeLinkCommand();

}  // namespace etude

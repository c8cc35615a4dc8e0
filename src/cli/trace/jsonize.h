#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Writes the messages of a Chakra trace as JSON.
std::unique_ptr<Command> MakeJsonizeCommand();

}  // namespace etude

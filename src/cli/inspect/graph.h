#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Draws a trace as a graph.
std::unique_ptr<Command> MakeGraphCommand();

}  // namespace etude

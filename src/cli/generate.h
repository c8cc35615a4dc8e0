#pragma once

#include <memory>

#include "src/cli/command.h"

namespace etude {

// Makes traces of patterns.
std::unique_ptr<Command> MakeGenerateCommand();

}  // namespace etude

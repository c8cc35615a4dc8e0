#pragma once

#include <memory>

#include "src/cli/command.h"

namespace etude {

std::unique_ptr<Command> MakeSimulateCommand();

}  // namespace etude

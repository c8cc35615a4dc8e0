#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

std::unique_ptr<Command> MakeComposeCommand();

}  // namespace etude

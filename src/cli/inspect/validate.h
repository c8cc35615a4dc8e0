#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Checks a trace or all traces of a folder; the answer is no if any has an error.
std::unique_ptr<Command> MakeValidateCommand();

}  // namespace etude

#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Makes one trace of those of several ranks or processes.
std::unique_ptr<Command> MakeMergeCommand();

}  // namespace etude

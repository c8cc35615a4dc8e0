#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Runs a PyTorch program and records one of its steps into a capture folder.
std::unique_ptr<Command> MakeRecordCommand();

}  // namespace etude

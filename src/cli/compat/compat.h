#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

std::unique_ptr<Command> MakeCompatCommand();

// The one choice of `--compat` of other commands.
inline constexpr const char* kCompatChakra = "chakra-1.0.0";

}  // namespace etude

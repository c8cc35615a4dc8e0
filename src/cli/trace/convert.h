#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Makes Chakra traces of host and linked traces, and linked traces of Chakra traces.
std::unique_ptr<Command> MakeConvertCommand();

}  // namespace etude

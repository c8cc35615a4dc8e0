#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// For `etude` too, which shows the command that `etude-torch` runs.
inline constexpr std::string_view kBenchmarkSummary =
    "make a benchmark of a recorded step that needs PyTorch only: C++ and Python";

std::unique_ptr<Command> MakeBenchmarkCommand();

}  // namespace etude

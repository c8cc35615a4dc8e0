#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Makes `etude whatif` with --measure, which replays the operators of an edited job.
std::unique_ptr<Command> MakeMeasuringWhatIfCommand();

}  // namespace etude

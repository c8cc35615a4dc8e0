#pragma once

#include <memory>

#include "src/cli/app/command.h"

namespace etude {

// Writes a page about traces and jobs.
std::unique_ptr<Command> MakeReportCommand();

}  // namespace etude

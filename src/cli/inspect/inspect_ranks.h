#pragma once

#include <memory>

#include "src/cli/app/command.h"
#include "src/report/inspections.h"

namespace etude {

// Makes the command of an inspection, which reads the ranks and prints the tables.
std::unique_ptr<Command> MakeInspectionCommand(const Inspection& inspection);

}  // namespace etude

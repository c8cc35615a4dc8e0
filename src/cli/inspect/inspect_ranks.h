#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"
#include "src/report/inspections.h"

namespace etude {

// Makes one of the commands `stats`, `breakdown`, `critical-path` and `memory`, which differ only
// in their inspection.
std::unique_ptr<Command> MakeInspectionCommand(const Inspection& inspection, std::string_view name,
                                               std::string_view summary);

}  // namespace etude

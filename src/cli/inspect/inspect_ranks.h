#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"
#include "src/report/inspections.h"

namespace etude {

// The commands `stats`, `breakdown`, `critical-path` and `memory`, which differ in what they look
// for only.
std::unique_ptr<Command> MakeInspectionCommand(const Inspection& inspection, std::string_view name,
                                               std::string_view summary);

}  // namespace etude

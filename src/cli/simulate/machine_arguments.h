#pragma once

#include <string_view>

#include "src/cli/app/options.h"
#include "src/jobs/machine_options.h"

namespace etude {

// Declares the options of a simulated machine. `network_help`: of --network.
void DeclareMachine(MachineOptions& machine, std::string_view network_help, Options& options);

}  // namespace etude

#pragma once

#include <string>

#include "src/base/run_context.h"
#include "src/cli/command.h"
#include "src/sim/diagnosis.h"
#include "src/sim/machine.h"
#include "src/sim/sim_program.h"
#include "src/sim/simulator.h"

namespace etude {

// Warns of what ASTRA-sim passes over without a word; `system` is what messages call the file.
void WarnOfSilences(const SimMachine& machine, const std::string& system,
                    const SimWorkload& workload, const SimResult& result,
                    const RunContext& context);

// Says why ranks wait for ever. `prefix`: of their files; "": they are called by their numbers.
void Complain(const SimDiagnosis& diagnosis, const std::string& prefix, const Console& console);

}  // namespace etude

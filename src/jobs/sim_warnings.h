#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/diagnosis.h"

namespace etude {

// The names of a machine's files in messages.
struct MachineNames {
  std::string system;
  std::string memory;
};

// Warns of settings that ASTRA-sim ignores silently.
void WarnOfSilences(const SimMachine& machine, const MachineNames& names,
                    const SimWorkload& workload, const SimResult& result,
                    const RunContext& context);

// Returns kBadInput if a roofline would replace all durations of a job by nothing, because no
// computation has bytes. `system`: the file in messages.
Status CheckRoofline(const std::string& system, const SimMachine& machine,
                     const SimWorkload& workload);

// Returns the names of ranks for messages. `prefix`: that of their files; "": ranks are named by
// number.
std::function<std::string(int64_t)> NamesOfRanks(const std::string& prefix);

// Returns the reasons for a deadlock, one line each. `prefix` as above.
std::vector<std::string> WhyStuck(const SimDiagnosis& diagnosis, const std::string& prefix);

}  // namespace etude

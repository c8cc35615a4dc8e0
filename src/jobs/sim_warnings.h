#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/diagnosis.h"

namespace etude {

// What messages call the files of a machine.
struct MachineNames {
  std::string system;
  std::string memory;
};

// Warns of what ASTRA-sim passes over without a word.
void WarnOfSilences(const SimMachine& machine, const MachineNames& names,
                    const SimWorkload& workload, const SimResult& result,
                    const RunContext& context);

// What messages call ranks. `prefix`: of their files; "": they are called by their numbers.
std::function<std::string(int64_t)> NamesOfRanks(const std::string& prefix);

// Why ranks wait for ever, a line each; `prefix` as above.
std::vector<std::string> WhyStuck(const SimDiagnosis& diagnosis, const std::string& prefix);

}  // namespace etude

#pragma once

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// Device use by a rank's computations under the roofline model: averages weighted by time, as
// printed by ASTRA-sim.
struct RooflineUse {
  double compute_bound = 0;  // share of the time that is compute bound
  double compute = 0;        // share of the peak
  double memory = 0;         // share of the memory bandwidth
  double intensity = 0;      // operations per byte
};

// Averages over the finished computations; zeros without a roofline. `rank`: the rank itself, not
// its class.
RooflineUse RooflineUseOf(const SimMachine& machine, const SimWorkload& workload,
                          const SimResult& result, int64_t rank);

}  // namespace etude

#pragma once

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// How well a rank's computations on the device use it by the roofline: averages over them by time,
// as ASTRA-sim prints them.
struct RooflineUse {
  double compute_bound = 0;  // share of the time at the peak
  double compute = 0;        // of the peak
  double memory = 0;         // of the memory's bandwidth
  double intensity = 0;      // operations a byte
};

// Of those that ended; zeros without a roofline. `rank`: the rank itself.
RooflineUse RooflineUseOf(const SimMachine& machine, const SimWorkload& workload,
                          const SimResult& result, int64_t rank);

}  // namespace etude

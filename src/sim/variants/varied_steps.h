#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// Random differences between computations and between ranks: docs/models/variation.md.
struct StepVariation {
  double noise = 0;       // standard deviation of the factor on each computation's time
  double slow_share = 0;  // probability that a rank is slow
  double slow_factor = 1;
  int64_t runs = 20;
  uint64_t seed = 1;

  bool any() const { return noise > 0 || slow_share > 0; }
};

// Simulates the step in `runs` runs with different draws; returns the times in ns. Errors of
// Simulate, and kBadInput for ranks that wait forever. If the context is interrupted, returns the
// runs so far.
Result<std::vector<int64_t>> SimulateVaried(const SimMachine& machine, const SimWorkload& workload,
                                            const StepVariation& variation,
                                            const RunContext& context);

}  // namespace etude

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// Step of a job on a machine that is faster in one respect.
struct Sensitivity {
  std::string what;  // "computations", "bandwidth of dimension 0"
  std::string key;   // stable: "compute", "bandwidth_0"
  int64_t time = 0;  // of the step, ns
};

inline constexpr double kSensitivityStep = 0.01;

// Simulates the job once for each respect in which the machine can be faster by kSensitivityStep:
// computations of all ranks, bandwidth and latency of the links of each dimension, on graphs of
// each kind of links with one bandwidth and latency, peak and memory bandwidth of a roofline, and
// times of communications. Latencies and times are divided, the others multiplied by 1 +
// kSensitivityStep. Errors of Simulate. If the context is interrupted, returns the results so far.
Result<std::vector<Sensitivity>> SensitivitiesOf(const SimMachine& machine,
                                                 const SimWorkload& workload,
                                                 const RunContext& context);

}  // namespace etude

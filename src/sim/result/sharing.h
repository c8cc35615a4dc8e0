#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/placed_jobs.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// A job that shares a network with others. Times are means over its steps, in ns.
struct SharingJob {
  int64_t steps = 1;
  int64_t alone = 0;   // step on the same NPUs while the others are idle
  int64_t shared = 0;  // step beside the other jobs
};

// Effect of jobs on each other (docs/models/shared_network.md).
struct SharingStudy {
  std::vector<SharingJob> jobs;
  SimWorkload workload;  // all jobs at once
  SimResult result;
};
inline constexpr int64_t kMostSharingSteps = 1000;

// Simulates each job alone, and all at once. Each job repeats its step while the job with the
// longest one runs, at most kMostSharingSteps times; `steps` of `jobs` are ignored. kBadInput with
// the name of a job that does not end, kInterrupted if the context is. Errors of Simulate.
Result<SharingStudy> StudySharing(const SimMachine& machine, std::vector<PlacedJob> jobs,
                                  std::span<const std::string> names, const RunContext& context);

}  // namespace etude

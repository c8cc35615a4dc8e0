#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// A job on some NPUs of a network.
struct PlacedJob {
  const SimWorkload* workload = nullptr;
  std::vector<int64_t> npus;  // by rank of the job; distinct
  int64_t steps = 1;          // how often each rank runs its program
};

// Returns the program `steps` times in a row: all nodes of a step wait for those of the step
// before. kBadInput if it is too large.
Result<SimProgram> RepeatProgram(const SimProgram& program, int64_t steps);

// Returns the workload of a network with `npus` NPUs on which the jobs run. Other NPUs are idle.
// Collectives of all ranks of a job become those of a group. No NPU may be in two jobs.
Result<SimWorkload> PlaceJobs(std::span<const PlacedJob> jobs, int64_t npus);

}  // namespace etude

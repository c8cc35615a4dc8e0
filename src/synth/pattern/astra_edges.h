#pragma once

#include <cstdint>

#include "src/synth/job/step_job.h"
#include "src/trace/trace.h"

namespace etude {

// What of a job ASTRA-sim (518bd51) does not bear as it is, and `etude convert --for astra-sim`
// mends: docs/models/astra_sim.md. Nodes of all ranks.
struct AstraEdges {
  uint64_t small_gathers = 0;  // all-gathers of so few bytes that they never end
  uint64_t small_firsts = 0;   // first computations so small that they may take no time at all
  uint64_t alone = 0;          // collectives of one rank, which hang
};

AstraEdges FindAstraEdges(const StepJob& job);
// Of a job in which so many ranks do the same, with durations.
AstraEdges FindAstraEdges(const Trace& trace, int64_t ranks);

}  // namespace etude

#pragma once

#include <cstdint>

#include "src/synth/job/step_job.h"
#include "src/trace/trace.h"

namespace etude {

// Conditions in a job that ASTRA-sim (518bd51) does not support, and that `etude convert --for
// astra-sim` repairs: docs/models/astra_sim.md. Numbers of nodes of all ranks.
struct AstraEdges {
  uint64_t small_gathers = 0;  // all-gathers with so few bytes that they never end
  uint64_t small_firsts = 0;   // first computations so small that they may take no time
  uint64_t alone = 0;          // collectives of one rank, which hang
};

AstraEdges FindAstraEdges(const StepJob& job);
// Finds them in a job of `ranks` ranks with this trace and durations.
AstraEdges FindAstraEdges(const Trace& trace, int64_t ranks);

}  // namespace etude

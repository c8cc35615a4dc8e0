#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/stragglers/rank_variants.h"
#include "src/sim/stragglers/remedies.h"

namespace etude {

// Steps of a job, in ns, in which some computations have other times.
struct Straggling {
  std::string what;   // "rank 1", "stage 0", "aten::mm"
  int64_t alone = 0;  // only these computations have their own times, all others ideal ones
  // Only these computations have ideal times, those of a rank the mean of others.
  int64_t mended = 0;
};

// Effect of differences between ranks that do the same (docs/models/stragglers.md).
struct StragglerStudy {
  int64_t ideal = 0;  // step in ns with the mean time of all ranks for each computation
  // The computations of one rank, of the ranks of one pipeline stage, and those of one name on all
  // ranks, the longest `alone` first. At most kMostStraggling each: those with most time above the
  // mean.
  std::vector<Straggling> ranks;
  std::vector<Straggling> stages;  // empty unless ranks form stages
  std::vector<Straggling> operators;
  size_t kinds = 0;   // of ranks that do the same
  size_t unlike = 0;  // number of ranks that do the same as no other
  std::vector<Remedy> remedies;
};
inline constexpr size_t kMostStraggling = 16;

// Simulates the job with ideal times, with those of one rank, stage or operator, and with remedies.
// kBadInput if no two ranks do the same and ranks form no stages, kInterrupted if the context is.
// Errors of Simulate.
Result<StragglerStudy> StudyStragglers(const SimMachine& machine, const SimWorkload& workload,
                                       const WorkNames& names, const RunContext& context);

}  // namespace etude

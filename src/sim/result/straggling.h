#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"
#include "src/trace/job/job.h"

namespace etude {

// Names of the computations in a job's programs.
struct WorkNames {
  struct Name {
    std::string text;
    bool is_label = false;  // time of a label or between operators, which ranks need not share
  };
  std::vector<Name> names;
  std::map<const SimProgram*, std::vector<uint32_t>> of_nodes;  // index into `names` by node
};
WorkNames WorkNamesOf(const Job& job, const SimWorkload& workload);

// Steps of a job, in ns, in which some computations have other times.
struct Straggling {
  std::string what;   // "rank 1", "aten::mm"
  int64_t alone = 0;  // only these computations have their own times, all others ideal ones
  int64_t mended =
      0;  // only these computations have ideal times, those of a rank the mean of others
};

// Effect of differences between ranks that do the same (docs/models/stragglers.md).
struct StragglerStudy {
  int64_t ideal = 0;  // step in ns with the mean time of all ranks for each computation
  // The computations of one rank, and those of one name on all ranks, the longest `alone` first. At
  // most kMostStraggling each: those with most time above the mean.
  std::vector<Straggling> ranks;
  std::vector<Straggling> operators;
  size_t kinds = 0;   // of ranks that do the same
  size_t unlike = 0;  // number of ranks that do the same as no other
};
inline constexpr size_t kMostStraggling = 16;

// Simulates the job with ideal times, and with those of one rank or operator. kBadInput if no two
// ranks do the same, kInterrupted if the context is. Errors of Simulate.
Result<StragglerStudy> StudyStragglers(const SimMachine& machine, const SimWorkload& workload,
                                       const WorkNames& names, const RunContext& context);

}  // namespace etude

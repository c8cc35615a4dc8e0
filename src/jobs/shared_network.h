#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/sim_job.h"
#include "src/report/text/table.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Options for several jobs on one network, for `etude simulate`.
struct SharedNetworkOptions {
  std::vector<std::string> beside;  // further jobs
  std::string place;                // see PlacesOf; "": packed

  bool empty() const { return beside.empty() && place.empty(); }
};

// Returns the NPUs of each job, by rank. `text` is "packed" (consecutive NPUs), "spread" (the jobs
// take NPUs in turn), "random" or "random:SEED", or the NPUs of each job: "0-3,8/4-7,9". `ranks`:
// number of ranks of each job. Returns kUsage for other texts and for NPUs that are not in the
// network or in two places, and kBadInput for more ranks than NPUs.
Result<std::vector<std::vector<int64_t>>> PlacesOf(std::string_view text,
                                                   const std::vector<int64_t>& ranks, int64_t npus);

// Several jobs that were simulated on one network.
struct SharedNetwork {
  std::vector<std::string> names;  // paths of the jobs
  int64_t time = 0;                // until the last job has ended, ns
  int64_t ranks = 0;               // of all jobs
  std::vector<Table> tables;       // "jobs", "collectives", "links" and those of the critical path
  std::vector<std::string> notes;
};
// Keys of its tables.
std::vector<std::string> SharedNetworkTables();

// Reads the job and those beside it, and simulates them alone and together. kUsage if messages on
// the machine do not share links.
Result<SharedNetwork> SimulateShared(const SharedNetworkOptions& options, const SimJobOptions& job,
                                     const SimMachine& machine, bool strict,
                                     const RunContext& context);

}  // namespace etude

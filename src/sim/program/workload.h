#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/read_trace.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/job/job.h"

namespace etude {

// Finds among the programs so far one that is the same.
class SharedPrograms {
 public:
  void Share(SimRank& rank);

 private:
  std::unordered_multimap<uint64_t, std::shared_ptr<const SimProgram>> known_;  // by content
};

// PREFIX.RANK.et: a rank's file, as ASTRA-sim names it.
std::string RankFileOf(const std::string& prefix, int64_t rank);

// PREFIX.0.et to PREFIX.N.et for `ranks` ranks. kIo for one that cannot be read, kBadInput for one
// that is no trace.
Result<SimWorkload> ReadSimFiles(const std::string& prefix, int64_t ranks,
                                 const ReadOptions& options, const RunContext& context);

// All ranks of a job; the programs of its classes are shared. kBadInput for a job without a trace
// of some rank, and for programs with cycles.
Result<SimWorkload> WorkloadOfJob(const Job& job, const Limits& limits = {});

// Groups of ranks by name, as those of a job with `ranks` ranks; names are numbers above 0, or 0
// for that of all ranks, which needs no list. kBadInput with `path` for others, and for lists of no
// ranks, of others, or of one twice.
Result<RankGroups> NumberedGroups(const std::map<std::string, std::vector<int64_t>>& groups,
                                  const std::string& path, int64_t ranks);

}  // namespace etude

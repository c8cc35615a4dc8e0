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

// Deduplicates programs.
class SharedPrograms {
 public:
  void Share(SimRank& rank);

 private:
  std::unordered_multimap<uint64_t, std::shared_ptr<const SimProgram>> known_;  // by content
};

// Returns the file name of a rank by ASTRA-sim's convention: PREFIX.RANK.et.
std::string RankFileOf(const std::string& prefix, int64_t rank);

// Reads PREFIX.0.et to PREFIX.N.et for `ranks` ranks. kIo for an unreadable file, kBadInput for one
// that is not a trace.
Result<SimWorkload> ReadSimFiles(const std::string& prefix, int64_t ranks,
                                 const ReadOptions& options, const RunContext& context);

// Makes the workload of all ranks of a job. Classes share their programs. kBadInput for a rank
// without a trace, and for cyclic programs.
Result<SimWorkload> WorkloadOfJob(const Job& job, const Limits& limits = {});

// Converts groups by name to groups by number, for a job with `ranks` ranks. Names must be positive
// numbers, or 0 for all ranks, which needs no list. kBadInput with `path` for other names, and for
// lists that are empty, or contain unknown or duplicate ranks.
Result<RankGroups> NumberedGroups(const std::map<std::string, std::vector<int64_t>>& groups,
                                  const std::string& path, int64_t ranks);

}  // namespace etude

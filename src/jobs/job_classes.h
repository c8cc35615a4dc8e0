#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/group_ranks.h"
#include "src/trace/job/job.h"
#include "src/transform/read_job.h"

namespace etude {

// The traces of ranks, and the ranks of groups that these traces do not list.
struct RankTraces {
  std::vector<Trace> traces;
  std::vector<int64_t> ranks;  // of the traces
  GroupRanks groups;
};
// Reads all `inputs`, `jobs` at a time. The file `groups` gives the groups. If it is "", the file
// next to the traces, if any, or the jobs in classes of the inputs give them. Returns kBadInput for
// several traces if one has no rank, and for groups that contradict the traces.
Result<RankTraces> ReadRankTraces(const std::vector<RankInput>& inputs, const std::string& groups,
                                  int64_t jobs, const ReadOptions& options,
                                  const RunContext& context);

struct JobClassesRequest {
  std::vector<RankInput> inputs;
  std::string output;  // a folder, created if it is missing
  ClassFiles files = ClassFiles::kChakra;
  // File with the ranks of groups, for groups that traces do not list; "": the one next to the
  // traces, if any.
  std::string groups;
  int64_t jobs = 0;  // ranks read at a time
};

// Counts of a job.
struct JobCounts {
  uint64_t ranks = 0;
  uint64_t classes = 0;
  uint64_t communications = 0;
  uint64_t nodes = 0;       // over all ranks
  uint64_t nodes_kept = 0;  // in the programs of the classes
};
JobCounts CountsOf(const Job& job);
// Returns a text such as "32,768 ranks in 8 classes".
std::string ClassesText(const JobCounts& counts);
// Returns a text such as "27,807 of 113,897,472 nodes".
std::string NodesText(const JobCounts& counts);

// Reads the inputs as a job. A folder of classes with all its ranks stays the same job, and
// anything else becomes one. Returns kUsage for an output that is the job itself. `strict`: damaged
// traces, and cycles, are refused.
Result<Job> ReadJob(const JobClassesRequest& request, bool strict, const RunContext& context);

}  // namespace etude

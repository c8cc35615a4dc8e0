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

// The traces of ranks, and the ranks of groups that these do not list.
struct RankTraces {
  std::vector<Trace> traces;
  std::vector<int64_t> ranks;  // of the traces
  GroupRanks groups;
};
// Reads all `inputs`, `jobs` at a time. Groups are those of the file `groups`; "": of the one
// beside the traces, if any, or of the jobs in classes that the inputs are of. kBadInput for
// several traces of which one does not tell its rank, and for groups that contradict the traces.
Result<RankTraces> ReadRankTraces(const std::vector<RankInput>& inputs, const std::string& groups,
                                  int64_t jobs, const ReadOptions& options,
                                  const RunContext& context);

struct JobClassesRequest {
  std::vector<RankInput> inputs;
  std::string output;  // a folder, made if need be
  ClassFiles files = ClassFiles::kChakra;
  // File of the ranks of groups, where traces do not list them; "": the one beside, if any.
  std::string groups;
  int64_t jobs = 0;  // ranks read at a time
};

// How many of what a job has.
struct JobCounts {
  uint64_t ranks = 0;
  uint64_t classes = 0;
  uint64_t communications = 0;
  uint64_t nodes = 0;       // of all ranks
  uint64_t nodes_kept = 0;  // of the programs of the classes
};
JobCounts CountsOf(const Job& job);
// "32,768 ranks in 8 classes".
std::string ClassesText(const JobCounts& counts);
// "27,807 of 113,897,472 nodes".
std::string NodesText(const JobCounts& counts);

// The job that the inputs are: a folder of classes all of whose ranks are asked for stays the job
// that it is; anything else becomes one. kUsage for an output that is the job itself. `strict`:
// damaged traces, and cycles, are refused.
Result<Job> ReadJob(const JobClassesRequest& request, bool strict, const RunContext& context);

}  // namespace etude

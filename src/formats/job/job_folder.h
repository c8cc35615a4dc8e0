#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/trace/job/job.h"

namespace etude {

// A job on disk (docs/formats/job_folder.md): classes.json, and the program of each class as a
// Chakra trace. Its ranks are files that are not there: DIR/rank.17.et is made of them when it is
// read.
inline constexpr std::string_view kClassesFile = "classes.json";

// How the programs of classes are written.
enum class ClassFiles : uint8_t {
  kChakra,  // class.0.et, for all tools
  kPacked,  // class.0.packed (PackedTrace), small
};

// Writes `job`, which has passed CheckJob, into `folder`, which is made if need be. Files appear
// one by one, classes.json last: where it is, and fits the others, the job is complete. Files of
// classes that a job in the folder had before, and this one has not, are removed.
Status WriteJobFolder(const Job& job, const std::string& folder, const RunContext& context,
                      ClassFiles files = ClassFiles::kChakra);

// The whole job. kBadInput for files that are none, that do not fit together, and what CheckJob
// has.
Result<Job> ReadJobFolder(const std::string& folder, const RunContext& context);

// Whether `folder` has a classes.json.
bool IsJobFolder(const std::string& folder);
// The ranks that have a trace. kBadInput also if they are more than can be listed.
Result<std::vector<int64_t>> RanksOfJobFolder(const std::string& folder, const RunContext& context);

// A rank of a job on disk.
struct JobRankPath {
  std::string folder;
  int64_t rank = 0;
};
std::string RankFileName(int64_t rank);
// The rank that `path` names; nullopt if it is a file, or not in a job's folder.
std::optional<JobRankPath> JobRankOfPath(const std::string& path);
// Its trace, of which one file besides classes.json is read.
Result<Trace> ReadJobRank(const JobRankPath& path, const RunContext& context);
// The same as the bytes of a Chakra trace.
Result<std::string> ReadJobRankBytes(const JobRankPath& path, const RunContext& context);

// What classes.json says, without the programs. `path` appears in messages.
Result<Job> ParseClassesFile(const std::string& path, std::string_view text,
                             const RunContext& context);

}  // namespace etude

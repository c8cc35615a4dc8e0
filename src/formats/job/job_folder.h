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
// Chakra trace. Its ranks are virtual files: DIR/rank.17.et is generated when it is read.
inline constexpr std::string_view kClassesFile = "classes.json";

// File format of the programs of classes.
enum class ClassFiles : uint8_t {
  kChakra,  // class.0.et, for all tools
  kPacked,  // class.0.packed (PackedTrace), small
};

// Writes `job`, which must have passed CheckJob, into `folder`, creating it if needed. Files appear
// one by one, classes.json last: the job is complete if classes.json exists and matches the others.
// Removes class files left by a previous job in the folder.
Status WriteJobFolder(const Job& job, const std::string& folder, const RunContext& context,
                      ClassFiles files = ClassFiles::kChakra);

// Reads the whole job. kBadInput for invalid or mismatched files, and for errors of CheckJob.
Result<Job> ReadJobFolder(const std::string& folder, const RunContext& context);

// Returns true if `folder` has a classes.json.
bool IsJobFolder(const std::string& folder);
// Returns the ranks with a trace. kBadInput also if they are too many to list.
Result<std::vector<int64_t>> RanksOfJobFolder(const std::string& folder, const RunContext& context);

// A rank of a job on disk.
struct JobRankPath {
  std::string folder;
  int64_t rank = 0;
};
std::string RankFileName(int64_t rank);
// Returns the rank named by `path`; nullopt if it is a real file, or not in a job folder.
std::optional<JobRankPath> JobRankOfPath(const std::string& path);
// Reads the trace of a rank from classes.json and one other file.
Result<Trace> ReadJobRank(const JobRankPath& path, const RunContext& context);
// Reads the trace of a rank as the bytes of a Chakra trace.
Result<std::string> ReadJobRankBytes(const JobRankPath& path, const RunContext& context);

// Parses classes.json, without the programs. `path` is used in messages.
Result<Job> ParseClassesFile(const std::string& path, std::string_view text,
                             const RunContext& context);

}  // namespace etude

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/job/job_json.h"
#include "src/formats/job/rank_name.h"

namespace etude {

// Trace files of one rank; "" if missing.
struct CaptureRank {
  std::optional<int64_t> rank;  // nullopt: the only process of the folder, without a stated rank
  std::string host;             // PyTorch execution trace
  std::string device;           // Kineto
  std::string native;           // capture of the native recorder
  std::string linked;
  std::string chakra;

  // Returns the existing files, in this order.
  std::vector<std::string> files() const;
  // Returns the rank for names of output files; 0 for the only process.
  int64_t number() const { return rank.value_or(0); }
};

// A file named like a trace of a rank, but with other contents.
struct DamagedFile {
  std::string path;
  std::string message;
};

// Folder of traces, one process each: from `etude record` or other tools.
struct CaptureFolder {
  std::string path;
  std::vector<CaptureRank> ranks;  // by rank
  std::optional<JobFile> job;      // job.json, if there is one
  std::vector<DamagedFile> damaged;
  std::vector<std::string> left_out;  // paths of traces that belong to no rank

  // Returns the facts of `rank` in job.json, or nullptr.
  const JobRank* job_rank(const CaptureRank& rank) const;
  // Returns the rank if its files or job.json name it.
  std::optional<int64_t> known_rank(const CaptureRank& rank) const {
    return rank.rank || job_rank(rank) == nullptr ? rank.rank : rank.number();
  }
  // Returns the path of a file in the folder.
  std::string File(const std::string& name) const { return path + "/" + name; }
};

// Lists the traces in `path`, detected by content; other files are ignored. For a job stored as
// classes (job_folder.h) returns its ranks. The rank comes from the name (rank_name.h), else from
// Kineto's distributedInfo, else from numbers in the names that count from 0. Traces of unknown
// rank beside others, and second traces of a kind and rank, are left out with a warning that names
// them. Of several recordings, the first is used for all ranks. kBadInput if there is no trace, or
// several without any known rank.
Result<CaptureFolder> ListCaptureFolder(const std::string& path, const RunContext& context);

// Returns true if `path` is a folder that can be accessed.
bool IsFolder(const std::string& path);

// Returns the error for a path that is not a folder: kIo if it does not exist, else kBadInput.
tl::unexpected<Error> NoFolder(const std::string& path);

}  // namespace etude

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

// The trace files of one rank; "" where there is none.
struct CaptureRank {
  std::optional<int64_t> rank;  // nullopt: the only process of the folder, its rank is not stated
  std::string host;             // PyTorch execution trace
  std::string device;           // Kineto
  std::string native;           // capture of the native recorder
  std::string linked;
  std::string chakra;

  // Those that exist, in this order.
  std::vector<std::string> files() const;
  // The rank as it appears in names of files that we write; 0 for the only process.
  int64_t number() const { return rank.value_or(0); }
};

// A file that is named like a trace of a rank and is none.
struct DamagedFile {
  std::string path;
  std::string message;
};

// A folder of traces, one process each: what `etude record` writes, or what other tools left.
struct CaptureFolder {
  std::string path;
  std::vector<CaptureRank> ranks;  // by rank
  std::optional<JobFile> job;      // job.json, if there is one
  std::vector<DamagedFile> damaged;
  std::vector<std::string> left_out;  // paths of traces that have no place among the ranks

  // The facts of `rank` in job.json, or nullptr.
  const JobRank* job_rank(const CaptureRank& rank) const;
  // The rank if its files or job.json name it.
  std::optional<int64_t> known_rank(const CaptureRank& rank) const {
    return rank.rank || job_rank(rank) == nullptr ? rank.rank : rank.number();
  }
  // Path of a file in the folder.
  std::string File(const std::string& name) const { return path + "/" + name; }
};

// Lists the traces in `path`, told by content; other files are passed over. Where a job is kept as
// classes (job_folder.h) these are its ranks. The rank comes from the name (rank_name.h), else from
// Kineto's distributedInfo, else from numbers in the names that count from 0. Traces of unknown
// rank beside others, and those of a rank that has one of their kind, are left out with a warning
// that names them; of several recordings one is taken, the first one, for all ranks.
// kBadInput if there is no trace, or several and the rank of none is known.
Result<CaptureFolder> ListCaptureFolder(const std::string& path, const RunContext& context);

// Whether `path` is a folder; what cannot be looked at is none.
bool IsFolder(const std::string& path);

// The error of a path that is none: kIo if nothing is there, else kBadInput.
tl::unexpected<Error> NoFolder(const std::string& path);

}  // namespace etude

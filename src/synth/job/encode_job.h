#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/job/job.h"
#include "src/trace/job/mesh.h"
#include "src/trace/trace.h"

namespace etude {

// Trace of one rank; must outlive the encoding.
struct RankOfJob {
  int64_t rank = 0;
  const Trace* trace = nullptr;
};

struct EncodeJobOptions {
  // nullopt: axes derived from the groups and messages of the job.
  std::optional<Mesh> mesh;
  // Ranks of process groups by name, for traces that do not list them.
  std::map<std::string, std::vector<int64_t>> groups;
  Limits limits;
};

// Encodes the traces of ranks as a job; TraceOfRank restores each of them. Ranks are in one class
// if their traces are equal except for their own ranks, names of process groups and partners of
// messages, provided that each group or partner follows from the rank. Group members and partners
// without a trace are in the mesh, but not in the job. Groups without listed members contain their
// callers (GroupKind::callers_only).
//
// kBadInput, with the ranks and nodes, for a duplicate rank, a rank that names a group it is not
// in, a trace with a cycle, and communications that do not fit together or wait for each other.
Result<Job> EncodeJob(std::span<const RankOfJob> ranks, const EncodeJobOptions& options = {});

}  // namespace etude

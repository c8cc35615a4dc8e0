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

// The trace of one rank, which outlives the encoding.
struct RankOfJob {
  int64_t rank = 0;
  const Trace* trace = nullptr;
};

struct EncodeJobOptions {
  // nullopt: axes that the groups and messages of the job suggest.
  std::optional<Mesh> mesh;
  // Ranks of process groups by name, where the traces do not list them.
  std::map<std::string, std::vector<int64_t>> groups;
  Limits limits;
};

// The job whose ranks have these traces; TraceOfRank gives each of them back. Ranks are of one
// class if their traces are equal but for their own ranks, the names of process groups and the
// partners of messages, wherever a group or a partner then follows from the rank. Members of groups
// and partners of messages without a trace are outside the job; the mesh has them. Where nobody
// says who is in a group, the job has those who call it, and says so (GroupKind::callers_only).
//
// kBadInput for a rank that occurs twice or names a group that it is not in, a trace with a cycle,
// and communications that do not fit together or that wait for each other: with the ranks and
// nodes.
Result<Job> EncodeJob(std::span<const RankOfJob> ranks, const EncodeJobOptions& options = {});

}  // namespace etude

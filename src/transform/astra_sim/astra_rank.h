#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/astra_sim/astra_notes.h"

namespace etude {

enum class AstraCompute : uint8_t {
  kDurations,  // compute nodes take the time that was recorded
  kFlops,      // and say what they compute and move, for ASTRA-sim's roofline
};

struct AstraRankOptions {
  AstraCompute compute = AstraCompute::kDurations;
  Limits limits;
};

// A node that ASTRA-sim runs.
struct AstraNode {
  static constexpr uint32_t kNone = UINT32_MAX;

  NodeKind kind = NodeKind::kCompute;  // kCollective, kSend, kRecv; all others compute
  uint32_t name = 0;                   // in AstraRank::names
  int32_t device = -1;                 // -1: none or unknown
  int32_t stream = -1;                 // -1: none or unknown
  uint32_t lane = kNone;               // nodes of a lane ran one after another
  std::optional<Nanos> start;
  std::optional<Nanos> duration;  // without what it called
  // Communication.
  CollectiveType type = CollectiveType::kUnknown;
  uint32_t group = kNone;            // in AstraRank::groups; kNone: the trace names none
  std::optional<int64_t> bytes_in;   // what this rank puts in
  std::optional<int64_t> bytes_out;  // what it gets out
  std::optional<int64_t> group_size;
  std::optional<int64_t> root;  // rank in the group
  std::optional<int64_t> peer;  // of kSend and kRecv: rank in the job
  std::optional<int64_t> tag;
  // kCompute with AstraCompute::kFlops: at least 1.
  uint64_t ops = 0;
  uint64_t bytes = 0;
};

struct AstraGroup {
  std::string name;
  std::optional<std::vector<int64_t>> ranks;  // empty: all ranks of the job; nullopt: unknown
  std::optional<int64_t> size;
  bool of_some = false;  // nobody lists its ranks, and not all ranks call it
};

// What ASTRA-sim can run of one rank's trace, before it is known what other ranks do.
struct AstraRank {
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::optional<int64_t> copy_of;  // it has no trace, and does what this rank does
  std::vector<std::string> names;
  std::vector<AstraGroup> groups;
  std::vector<AstraNode> nodes;  // each behind what it waits for, else in order of time
  std::vector<uint32_t> deps;    // of all nodes; those of node i end at dep_ends[i]
  std::vector<uint64_t> dep_ends;
  AstraNotes notes;
  bool on_device = false;  // device work, without the host's
  Nanos host_time;         // own time of host nodes that were left out

  std::span<const uint32_t> DepsOf(uint32_t node) const {
    const uint64_t begin = node == 0 ? 0 : dep_ends[node - 1];
    return std::span(deps).subspan(begin, dep_ends[node] - begin);
  }
};

// Takes out of `trace`, which ToChakra made, all that ASTRA-sim does not run. Of traces with device
// work that work stays, and communication; the order that the host gave it stays, too. Of traces
// without, operators and labels stay that took time of their own, in the order of their threads.
//
// kBadInput if the trace has a cycle or exceeds a limit.
Result<AstraRank> MakeAstraRank(const Trace& trace, const AstraRankOptions& options);

}  // namespace etude

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
#include "src/transform/runnable/runnable_notes.h"

namespace etude {

enum class RunnableCompute : uint8_t {
  kDurations,  // compute nodes take the recorded time
  kFlops,      // also with operations and bytes, for a roofline
};

struct RunnableRankOptions {
  RunnableCompute compute = RunnableCompute::kDurations;
  Limits limits;
};

// A node of a runnable job: it computes or communicates.
struct RunnableNode {
  static constexpr uint32_t kNone = UINT32_MAX;

  NodeKind kind = NodeKind::kCompute;  // kCollective, kSend, kRecv; all others compute
  NodeId origin;                       // node of the trace; kNone: added by an edit
  uint32_t name = 0;                   // index into AstraRank::names
  bool on_host = false;                // of a rank with device work: a launch added by an edit
  int32_t device = -1;                 // -1: none or unknown
  int32_t stream = -1;                 // -1: none or unknown
  uint32_t lane = kNone;               // nodes of a lane ran one after another
  std::optional<Nanos> start;
  std::optional<Nanos> duration;  // without callees
  std::optional<Nanos> transfer;  // of communication: the part after the last member's begin
  // For communication.
  CollectiveType type = CollectiveType::kUnknown;
  uint32_t group = kNone;            // index into AstraRank::groups; kNone: the trace names none
  std::optional<int64_t> bytes_in;   // this rank's input
  std::optional<int64_t> bytes_out;  // this rank's output
  std::optional<int64_t> group_size;
  std::optional<int64_t> root;  // rank in the group
  std::optional<int64_t> peer;  // of kSend and kRecv: rank in the job
  std::optional<int64_t> tag;
  // For kCompute with RunnableCompute::kFlops: at least 1.
  uint64_t ops = 0;
  uint64_t bytes = 0;
};

struct RunnableGroup {
  std::string name;
  std::optional<std::vector<int64_t>> ranks;  // empty: all ranks of the job; nullopt: unknown
  std::optional<int64_t> size;
  bool of_some = false;  // whether its ranks are not listed and not all ranks call it
};

// The part of one rank's trace that a simulator can run, before it is compared with other ranks.
struct RunnableRank {
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::optional<int64_t> copy_of;  // it has no trace and copies this rank
  std::vector<std::string> names;
  std::vector<RunnableGroup> groups;
  std::vector<RunnableNode>
      nodes;                   // each after the nodes that it waits for, otherwise in order of time
  std::vector<uint32_t> deps;  // of all nodes; those of node i end at dep_ends[i]
  std::vector<uint64_t> dep_ends;
  RunnableNotes notes;
  bool on_device = false;  // device work, without the host's
  Nanos host_time;         // own time of host nodes that were left out

  std::span<const uint32_t> DepsOf(uint32_t node) const {
    const uint64_t begin = node == 0 ? 0 : dep_ends[node - 1];
    return std::span(deps).subspan(begin, dep_ends[node] - begin);
  }
};

// Extracts the nodes that ASTRA-sim runs from `trace`, a result of ToChakra. For traces with device
// work, keeps this work, communication, and the order imposed by the host. For other traces, keeps
// operators and labels with own time, in the order of their threads.
//
// Returns kBadInput if the trace has a cycle or exceeds a limit.
Result<RunnableRank> MakeRunnableRank(const Trace& trace, const RunnableRankOptions& options);

}  // namespace etude

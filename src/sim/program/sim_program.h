#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/container/csr.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/trace/trace.h"

namespace etude {

// A node of a rank as a simulator sees it.
struct SimNode {
  static constexpr uint32_t kNobody = UINT32_MAX;

  NodeKind kind = NodeKind::kCompute;
  bool on_host = false;
  bool unsized = false;  // a communication that does not say its bytes
  CollectiveType collective = CollectiveType::kUnknown;
  uint32_t dims = ~uint32_t{0};  // of the network that a collective uses: bit i for dimension i
  uint32_t peer = kNobody;       // number of the partner among those of the rank
  uint32_t group = 0;            // 0: all ranks; i: that with the number i - 1 of the rank's
  int64_t duration = 0;          // ns; 0: not known
  int64_t flops = 0;
  int64_t bytes = 0;  // of a message, of memory, or that a computation touches
  int64_t tag = 0;
  int64_t priority = 0;
  int64_t root = 0;  // of a collective: place in the group

  friend bool operator==(const SimNode&, const SimNode&) = default;
};

// Where a node runs, one at a time in each slot; receives need none.
enum SimSlot : size_t { kHostSlot, kDeviceSlot, kCommSlot, kNoSlot };
inline SimSlot SlotOf(const SimNode& node) {
  if (node.kind == NodeKind::kRecv) return kNoSlot;
  if (node.on_host) return kHostSlot;
  return node.kind == NodeKind::kCompute ? kDeviceSlot : kCommSlot;
}

// Three years, ns: what takes longer is refused.
inline constexpr int64_t kLongestSimulation = 99'999'999'999'999'999;

// Tags of nodes count modulo this.
inline constexpr int64_t kTagSpace = 500'000'000;
// By which a message is matched.
inline int64_t TagOf(const SimNode& node) { return node.tag % kTagSpace; }

// What a rank does: nodes by ascending id, in columns.
struct SimProgram {
  std::vector<SimNode> nodes;
  std::vector<NodeId> origin;        // of the trace
  std::vector<uint64_t> source_ids;  // of its file
  std::vector<uint32_t> waits;       // how many others a node waits for
  Csr<uint32_t> children;            // who waits for it

  friend bool operator==(const SimProgram&, const SimProgram&) = default;
};

// A rank: what it does, and with whom, by the numbers that nodes have. Ranks that do the same with
// others share a program.
struct SimRank {
  std::shared_ptr<const SimProgram> program;
  std::vector<int64_t> groups;  // keys of RankGroups
  std::vector<int64_t> peers;   // ranks; -1: not known

  // 0: of all ranks.
  int64_t GroupOf(const SimNode& node) const {
    return node.group == 0 ? 0 : groups[node.group - 1];
  }
  int64_t PeerOf(const SimNode& node) const {
    return node.peer == SimNode::kNobody ? -1 : peers[node.peer];
  }
};

// Warns of references of a file's nodes to ids that are not there, and of ids that are not unique.
void WarnOfIds(const Trace& trace, const std::string& path, const RunContext& context);

// What `trace` does. Groups have the numbers that they are named by; other names stand for all
// ranks, as in ASTRA-sim. kBadInput for a cycle, which no simulator can run, and for a time that is
// too long for one.
Result<SimRank> MakeSimRank(const Trace& trace);

// The same of a program whose nodes name groups and partners otherwise: `comms` has for each node
// of the trace the group (0: all ranks) and the partner (-1: none), which become those of SimRank.
struct SimPartners {
  int64_t group = 0;
  int64_t peer = -1;
};
Result<SimRank> MakeSimRank(const Trace& trace, std::span<const SimPartners> comms);

using RankGroups = std::map<int64_t, std::vector<int64_t>>;

// The programs, groups and ranks of a job.
struct SimWorkload {
  std::vector<SimRank> ranks;
  RankGroups groups;
  // Of recorded traces, whose times are all known: a computation without one was too short for the
  // microseconds in which ASTRA-sim counts.
  bool rounded_times = false;
};

}  // namespace etude

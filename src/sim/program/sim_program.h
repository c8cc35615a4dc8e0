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

// A node of a rank in the form that simulators use.
struct SimNode {
  static constexpr uint32_t kNobody = UINT32_MAX;

  NodeKind kind = NodeKind::kCompute;
  bool on_host = false;
  bool unsized = false;  // a communication without a stated size
  CollectiveType collective = CollectiveType::kUnknown;
  uint32_t dims = ~uint32_t{0};  // network dimensions of a collective: bit i for dimension i
  uint32_t peer = kNobody;       // number of the partner in SimRank::peers
  uint32_t group = 0;            // 0: all ranks; i: SimRank::groups[i - 1]
  int64_t duration = 0;          // ns; 0: unknown
  int64_t flops = 0;
  int64_t bytes = 0;  // of a message or memory access, or touched by a computation
  int64_t tag = 0;
  int64_t priority = 0;
  int64_t root = 0;  // of a collective: position in the group

  friend bool operator==(const SimNode&, const SimNode&) = default;
};

// Slot in which a node runs. A slot runs one node at a time; receives need none. `group_slots`: of
// collectives, by group number of the rank; empty: they share that of other communication.
inline constexpr size_t kHostSlot = 0;
inline constexpr size_t kDeviceSlot = 1;
inline constexpr size_t kCommSlot = 2;
inline constexpr size_t kFirstGroupSlot = 3;
inline constexpr size_t kGroupSlots = 6;
inline constexpr size_t kNoSlot = kFirstGroupSlot + kGroupSlots;
inline size_t SlotOf(const SimNode& node, std::span<const size_t> group_slots) {
  if (node.kind == NodeKind::kRecv) return kNoSlot;
  if (node.on_host) return kHostSlot;
  if (node.kind == NodeKind::kCompute) return kDeviceSlot;
  const bool has_own = !group_slots.empty() && node.kind == NodeKind::kCollective;
  return has_own ? group_slots[node.group] : kCommSlot;
}

// Maximum simulated time, in ns (three years); longer ones are refused.
inline constexpr int64_t kLongestSimulation = 99'999'999'999'999'999;

// Tags of nodes are taken modulo this number.
inline constexpr int64_t kTagSpace = 500'000'000;
// Returns the tag by which a message is matched.
inline int64_t TagOf(const SimNode& node) { return node.tag % kTagSpace; }

// Program of a rank: columns by node, in ascending order of ids.
struct SimProgram {
  std::vector<SimNode> nodes;
  std::vector<NodeId> origin;        // node of the trace
  std::vector<uint64_t> source_ids;  // id in the file
  std::vector<uint32_t> waits;       // number of dependencies
  Csr<uint32_t> children;            // dependent nodes
  bool host_computes = false;        // the host instead of a device: no node is `on_host`

  friend bool operator==(const SimProgram&, const SimProgram&) = default;
};

// A rank: its program, and the groups and partners behind the numbers in its nodes. Ranks that do
// the same share a program.
struct SimRank {
  std::shared_ptr<const SimProgram> program;
  std::vector<int64_t> groups;  // keys of RankGroups
  std::vector<int64_t> peers;   // ranks; -1: unknown

  // Returns the group's key; 0: all ranks.
  int64_t GroupOf(const SimNode& node) const {
    return node.group == 0 ? 0 : groups[node.group - 1];
  }
  int64_t PeerOf(const SimNode& node) const {
    return node.peer == SimNode::kNobody ? -1 : peers[node.peer];
  }
};

// Warns of dangling references and of duplicate ids in a file's nodes.
void WarnOfIds(const Trace& trace, const std::string& path, const RunContext& context);

// Makes the program of `trace`. Groups are keyed by their numeric names; other names mean all
// ranks, as in ASTRA-sim. kBadInput for a cycle or an excessive time, which no simulator can run.
Result<SimRank> MakeSimRank(const Trace& trace);

// As above, for programs that name groups and partners differently. `comms` contains the group (0:
// all ranks) and the partner (-1: none) of each node of the trace; they become those of SimRank.
struct SimPartners {
  int64_t group = 0;
  int64_t peer = -1;
};
Result<SimRank> MakeSimRank(const Trace& trace, std::span<const SimPartners> comms);

using RankGroups = std::map<int64_t, std::vector<int64_t>>;

// Returns the slots of collectives by group number, of a rank whose groups communicate at once. Of
// more groups than slots, some share one. Groups of all ranks share that of group 0, because their
// collectives are numbered together. `total`: number of ranks.
std::vector<size_t> GroupSlotsOf(const SimRank& rank, const RankGroups& groups, int64_t total);

// Programs, groups and ranks of a job.
struct SimWorkload {
  std::vector<SimRank> ranks;
  RankGroups groups;
  // From recorded traces in which all times are known: a computation without a duration was below
  // the microsecond resolution of ASTRA-sim.
  bool rounded_times = false;
  // From recorded traces: cores of a host computation while it was recorded, at most 1. Its
  // duration contains the sharing of cores with others.
  double core_share = 1;
  std::vector<int64_t> begins;  // ns, by rank: when it begins; empty: all at 0
};

}  // namespace etude

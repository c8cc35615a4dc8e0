#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// One communication of one rank, as far as recorded.
struct CommCall {
  NodeKind kind = NodeKind::kCollective;  // or kSend, kRecv
  CollectiveType type = CollectiveType::kUnknown;
  std::string name;    // as recorded; "" if missing
  size_t group = 0;    // index into CommLog::groups
  uint64_t index = 0;  // index among the collectives of its group on this rank
  std::optional<Bytes> bytes;
  bool uneven = false;          // by split sizes, ranks contribute different amounts
  std::optional<int64_t> peer;  // global rank, of sends and receives
  std::optional<int64_t> tag;
  uint64_t node = 0;  // source id of the operator that issued it, else of the node itself
  NodeId row;         // node with its times: the node itself, or its carrier (CommNode)
  NodeId facts;       // node with its type, bytes, group and partner
  std::optional<Nanos> begin;
  std::optional<Nanos> end;
  std::optional<int64_t> step;  // number of the preceding step mark ("ProfilerStep#3")

  // Returns the type of a collective ("all_reduce"), or its recorded name if the type is unknown.
  std::string_view TypeName() const;
  // Returns "all_reduce #17 of group '2'" or "send to rank 3 (tag 1)".
  std::string Text(const struct CommLog& log) const;
};

// All communication of one rank, in order of issue.
struct CommLog {
  struct Group {
    std::string name;
    std::vector<int64_t> ranks;  // empty: all ranks, or not recorded
    bool is_all = false;         // the trace states that the group contains all ranks of the job

    // Facts that only one trace has do not make groups different.
    friend bool operator==(const Group& a, const Group& b) {
      return a.name == b.name && a.ranks == b.ranks;
    }
    friend auto operator<=>(const Group& a, const Group& b) {
      return std::tie(a.name, a.ranks) <=> std::tie(b.name, b.ranks);
    }
  };

  int64_t rank = 0;
  std::optional<int64_t> world_size;
  bool job_clock = false;      // times are by the common clock of a simulated job
  std::string clock;           // name of the machine's clock for the times; "": unknown
  std::optional<Nanos> base;   // origin of the times, since 1970; nullopt: unknown
  bool untimed = false;        // no node has a start time: there is no clock
  uint64_t ungrouped = 0;      // collectives without a stated group, if the job has smaller
                               // groups, too
  std::vector<int64_t> steps;  // numbers of the step marks with times, ascending
  std::vector<Group> groups;
  std::vector<CommCall> calls;
};

// A communication of a trace.
struct CommNode {
  NodeId node;     // node with its facts
  NodeId carrier;  // device work that carried it with other calls; kNone: none
  // Returns the node with its times.
  NodeId work() const { return carrier ? carrier : node; }
  friend bool operator==(const CommNode&, const CommNode&) = default;
};

// Returns the communications of the trace, each once. Device work in a group replaces the host's
// calls, and a call replaces those inside it. Calls launched together in one kernel without facts
// ("nccl:coalesced") replace that kernel.
std::vector<CommNode> CommNodes(const Trace& trace);

// Returns the duration; nullopt if unknown, also if only the c10d call is known.
std::optional<Nanos> CommDuration(const Trace& trace, const CommNode& one);

// Returns the type of a communication from CommNodes: "all_reduce", "send".
std::string_view CommTypeName(const Trace& trace, NodeId node);

// Returns the message for CommLog::ungrouped collectives.
std::string UngroupedText(uint64_t count);

// Reads the communications of device work if there are any, else those of host calls, sorted by
// start, else by id.
CommLog ReadCommLog(const Trace& trace, int64_t rank);

}  // namespace etude

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

// One communication of one rank, as far as the trace tells.
struct CommCall {
  NodeKind kind = NodeKind::kCollective;  // or kSend, kRecv
  CollectiveType type = CollectiveType::kUnknown;
  std::string name;    // as recorded; "" if it is not
  size_t group = 0;    // index into CommLog::groups
  uint64_t index = 0;  // its number among the collectives of its group on this rank, from 0
  std::optional<Bytes> bytes;
  bool uneven = false;          // split sizes say that ranks put in different amounts
  std::optional<int64_t> peer;  // global rank, of sends and receives
  std::optional<int64_t> tag;
  uint64_t node = 0;  // id in the file of the operator that issued it, else of the node itself
  NodeId row;         // what has its times: the node itself, or what carried it (CommNode)
  std::optional<Nanos> begin;
  std::optional<Nanos> end;
  std::optional<int64_t> step;  // number of the step mark ("ProfilerStep#3") it was issued behind

  // Of collectives: "all_reduce", or the name as recorded where that is no known type.
  std::string_view TypeName() const;
  // "all_reduce #17 of group '2'", "send to rank 3 (tag 1)".
  std::string Text(const struct CommLog& log) const;
};

// All communication of one rank in the order of issue.
struct CommLog {
  struct Group {
    std::string name;
    std::vector<int64_t> ranks;  // empty: all ranks, or not recorded
    bool is_all = false;         // the trace says that all ranks of the job are in it

    // What one trace says and another does not makes no other group.
    friend bool operator==(const Group& a, const Group& b) {
      return a.name == b.name && a.ranks == b.ranks;
    }
    friend auto operator<=>(const Group& a, const Group& b) {
      return std::tie(a.name, a.ranks) <=> std::tie(b.name, b.ranks);
    }
  };

  int64_t rank = 0;
  std::optional<int64_t> world_size;
  bool job_clock = false;     // its times are by the one clock of a simulated job
  std::string clock;          // name of the machine's clock that its times are by; "": unknown
  std::optional<Nanos> base;  // what its times count from, since 1970; nullopt: unknown
  bool untimed = false;       // of no node it is known when it began: there is no clock
  uint64_t ungrouped = 0;     // collectives of no stated group, where the job has smaller ones, too
  std::vector<int64_t> steps;  // the numbers of its marks with times, ascending
  std::vector<Group> groups;
  std::vector<CommCall> calls;
};

// A communication of a trace.
struct CommNode {
  NodeId node;     // what is known of it
  NodeId carrier;  // a device's work that carried it together with other calls; kNone: none did
  // What has its times.
  NodeId work() const { return carrier ? carrier : node; }
  friend bool operator==(const CommNode&, const CommNode&) = default;
};

// The communications of the trace, each once: what devices did in a group stands for the host's
// calls, and a call for those inside it. Calls that went out together in one kernel, of which it
// says nothing ("nccl:coalesced"), stand for that kernel.
std::vector<CommNode> CommNodes(const Trace& trace);

// How long it took; nullopt if that is unknown, also where the call of c10d's alone is known.
std::optional<Nanos> CommDuration(const Trace& trace, const CommNode& one);

// "all_reduce", "send": what the communication `node` of CommNodes is.
std::string_view CommTypeName(const Trace& trace, NodeId node);

// "12 collectives do not say in which of the job's groups, …", of CommLog::ungrouped.
std::string UngroupedText(uint64_t count);

// Device work that communicates if there is any, else the host's calls; by start, else by id.
CommLog ReadCommLog(const Trace& trace, int64_t rank);

}  // namespace etude

#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Copies facts of nodes from one trace to another and fills the tables of the other as needed. A
// builder that began with the tables of `from` already has all entries. Both must outlive it. Not
// thread-safe.
class TraceCopy {
 public:
  TraceCopy(const Trace& from, TraceBuilder& to);

  StringId Text(StringId id);
  IntListId Ints(IntListId id);
  ValueListId Values(ValueListId id);
  LaneId LaneOf(LaneId id);
  Lane MakeLane(const Lane& lane);
  Comm MakeComm(const Comm& comm);
  ProcessGroup MakeGroup(const ProcessGroup& group);
  Extra MakeExtra(const Extra& extra);

  // Replaces the facts of the whole trace, except groups and stats.
  void CopyInfo();
  // Add the process groups, and the counts except those that a builder derives by itself
  // (references, duplicates, cycles).
  void AddGroups();
  void AddStats();
  // Counts nodes that shared an id and now have one of their own.
  void CountRenumbered();

  // Returns all facts of the row of `node`, except its parent.
  NodeRow Row(NodeId node);
  // Copies extras and communication facts of `from` to `to`.
  void AddFacts(NodeId from, NodeId to);

 private:
  Value MakeValue(const Value& value);
  TensorId Tensor(TensorId id);

  const Trace& from_;
  TraceBuilder& to_;
  // By id in from_; kNone until needed.
  const bool same_tables_;
  std::vector<StringId> strings_;
  std::vector<IntListId> ints_;
  std::vector<ValueListId> values_;
  std::vector<TensorId> tensors_;
  std::vector<LaneId> lanes_;
};

// Returns true if a shared number of nodes (a thread, a correlation …) is small enough to come from
// a counter. When traces are merged, such numbers are shifted so that they do not collide; other
// numbers stay.
template <std::integral Number>
constexpr bool IsCountedUp(Number number) {
  return std::cmp_greater_equal(number, 0) && std::cmp_less(number, int64_t{1} << 40);
}

// Returns true for counts that a builder derives from the trace by itself.
bool FoundByBuilder(Stat stat);

// Modifications by CopyTrace: of a node's row and communication facts, which refer to the new
// trace; of a process group; of the facts of the whole.
struct TraceChange {
  std::function<void(NodeId, NodeRow&, std::optional<Comm>&)> node;
  std::function<void(ProcessGroup&)> group;
  std::function<void(TraceInfo&)> info;
};

// Copies `from` with an empty builder: the same nodes in the same order under the same ids, with
// their references, including dangling ones, and the same counts. Tables contain the entries in
// use, in the order of use, unless the builder began with those of `from`.
Result<Trace> CopyTrace(const Trace& from, TraceBuilder& to, const TraceChange& change = {});

}  // namespace etude

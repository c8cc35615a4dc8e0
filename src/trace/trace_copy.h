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

// Carries what nodes of one trace say over to another trace, whose tables it fills as needed; a
// builder that began with the tables of `from` has all. Both must outlive it. Not thread-safe.
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

  // The facts of the whole trace replace those of the new one, but for groups and stats.
  void CopyInfo();
  // Adds the process groups, and the counts of what was met on the way to the trace, but for what a
  // builder finds by itself (references, duplicates, cycles).
  void AddGroups();
  void AddStats();
  // Ids that several nodes had are now each one node's: counts them.
  void CountRenumbered();

  // Everything that the row of `node` can say, but no parent.
  NodeRow Row(NodeId node);
  // Extras and facts of communication of `from` go to `to`.
  void AddFacts(NodeId from, NodeId to);

 private:
  Value MakeValue(const Value& value);
  TensorId Tensor(TensorId id);

  const Trace& from_;
  TraceBuilder& to_;
  // By the ids of from_; kNone until needed.
  const bool same_tables_;
  std::vector<StringId> strings_;
  std::vector<IntListId> ints_;
  std::vector<ValueListId> values_;
  std::vector<TensorId> tensors_;
  std::vector<LaneId> lanes_;
};

// Whether a number that nodes have in common (of a thread, of a correlation …) was counted up to.
// Where several traces become one, such numbers of one trace move out of the way of the others';
// the rest stay as they are.
template <std::integral Number>
constexpr bool IsCountedUp(Number number) {
  return std::cmp_greater_equal(number, 0) && std::cmp_less(number, int64_t{1} << 40);
}

// Counts that a builder makes by itself, of what a trace shows again.
bool FoundByBuilder(Stat stat);

// What CopyTrace may alter: a node, whose row and facts of communication are those of the new
// trace; a process group; the facts of the whole.
struct TraceChange {
  std::function<void(NodeId, NodeRow&, std::optional<Comm>&)> node;
  std::function<void(ProcessGroup&)> group;
  std::function<void(TraceInfo&)> info;
};

// A copy of `from` by an empty builder: the same nodes in the same order under the same ids, with
// their references, also to nodes that are not there, and the same counts of what was met. Tables
// hold what is used, in the order of use, unless the builder began with those of `from`.
Result<Trace> CopyTrace(const Trace& from, TraceBuilder& to, const TraceChange& change = {});

}  // namespace etude

#include "src/run/exclusive_times.h"

#include <algorithm>

#include "src/base/container/csr.h"
#include "src/base/container/intervals.h"

namespace etude {
namespace {

struct Inside {
  NodeId above;
  Interval time;
};

bool IsTimed(const NodeTime& time) { return time.start && time.duration; }

// Returns the nodes in an order with each node after its parent.
std::vector<NodeId> ParentsFirst(const Trace& tree) {
  std::vector<NodeId> order;
  order.reserve(tree.node_count());
  ForEachNode(tree, [&](NodeId node) {
    if (!tree.parent(node)) order.push_back(node);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    for (const NodeId child : tree.children(order[i])) order.push_back(child);
  }
  return order;
}

// Returns the length of the union of `intervals`, which must be sorted by begin.
Nanos UnionLength(std::span<const Interval> intervals) {
  Nanos sum;
  Nanos covered_to{INT64_MIN};
  for (const Interval& interval : intervals) {
    const Nanos begin = std::max(interval.begin, covered_to);
    if (interval.end <= begin) continue;
    sum = sum + (interval.end - begin);
    covered_to = interval.end;
  }
  return sum;
}

}  // namespace

ExclusiveTimes FindExclusiveTimes(const Trace& tree, std::span<const NodeTime> times) {
  ExclusiveTimes result;
  result.times.resize(times.size());
  // Nearest node above that has times, on any lane.
  std::vector<NodeId> above(times.size());
  std::vector<Inside> intervals;
  for (const NodeId node : ParentsFirst(tree)) {
    const NodeId parent = tree.parent(node);
    if (parent)
      above[node.index()] = IsTimed(times[parent.index()]) ? parent : above[parent.index()];
    const NodeId over = above[node.index()];
    const NodeTime& time = times[node.index()];
    if (!over || !IsTimed(time) || time.lane != times[over.index()].lane) continue;
    const Nanos over_begin = *times[over.index()].start;
    const Nanos over_end = over_begin + *times[over.index()].duration;
    const Nanos begin = *time.start;
    const Nanos end = begin + *time.duration;
    if (begin < over_begin || end > over_end) ++result.overhanging;
    intervals.push_back({over, {std::max(begin, over_begin), std::min(end, over_end)}});
  }
  const auto by_above = Csr<Interval>::Build(
      times.size(), intervals, [](const Inside& inside) { return inside.above.index(); },
      [](const Inside& inside) { return inside.time; });
  std::vector<Interval> inside;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!times[i].duration) continue;
    inside.assign(by_above[i].begin(), by_above[i].end());
    if (!std::ranges::is_sorted(inside, {}, &Interval::begin)) {
      std::ranges::sort(inside, {}, &Interval::begin);
    }
    result.times[i] = *times[i].duration - UnionLength(inside);
  }
  return result;
}

std::vector<NodeTime> NodeTimesOf(const Trace& trace) {
  std::vector<NodeTime> times(trace.node_count());
  ForEachNode(trace, [&](NodeId node) { times[node.index()] = NodeTimeOf(trace, node); });
  return times;
}

std::vector<std::optional<Nanos>> SelfTimes(const Trace& trace) {
  const std::vector<NodeTime> times = NodeTimesOf(trace);
  std::vector<std::optional<Nanos>> self(times.size());
  if (trace.traits().exclusive_durations) {
    for (size_t i = 0; i < times.size(); ++i) self[i] = times[i].duration;
  } else {
    self = FindExclusiveTimes(trace, times).times;
  }
  ForEachNode(trace, [&](NodeId node) {
    if (const auto known = trace.exclusive(node)) self[node.index()] = known;
  });
  return self;
}

}  // namespace etude

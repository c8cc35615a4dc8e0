#include "src/transform/host_times.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

namespace etude {
namespace {

// One thread, its nodes in order of time.
class ThreadClock {
 public:
  ThreadClock(const Trace& trace, std::vector<std::optional<Nanos>>& own)
      : trace_(trace), own_(own) {}

  // `waited_until`: the end of what `node` waited for on other threads.
  void Add(NodeId node, std::optional<Nanos> waited_until) {
    const Nanos start = *trace_.start(node);
    while (!open_.empty() && EndOf(open_.back()) <= start) Close();
    own_[node.index()] = trace_.duration(node);
    if (!open_.empty()) {
      const NodeId around = open_.back();
      Subtract(around, std::min(EndOf(node), EndOf(around)) - start);
      if (waited_until) Subtract(around, std::min(start, *waited_until) - last_);
    }
    last_ = start;
    open_.push_back(node);
  }

 private:
  Nanos EndOf(NodeId node) const { return *trace_.start(node) + *trace_.duration(node); }
  void Close() {
    last_ = std::max(last_, EndOf(open_.back()));
    open_.pop_back();
  }
  void Subtract(NodeId node, Nanos time) {
    auto& own = own_[node.index()];
    if (time.count > 0) own = std::max(*own - time, Nanos{});
  }

  const Trace& trace_;
  std::vector<std::optional<Nanos>>& own_;
  std::vector<NodeId> open_;
  Nanos last_;  // the thread was last seen to begin or end something
};

}  // namespace

std::optional<Nanos> StatedOwnTime(const Trace& trace, NodeId node) {
  if (const auto own = trace.exclusive(node)) return own;
  const bool leaf = trace.children(node).empty();
  return leaf || trace.info().exclusive_durations ? trace.duration(node) : std::nullopt;
}

std::optional<HostTimes> HostTimes::Find(const Trace& trace) {
  std::vector<NodeId> nodes;
  bool complete = true;
  ForEachNode(trace, [&](NodeId node) {
    const auto duration = trace.duration(node);
    if (!duration || duration->count < 0) return;
    nodes.push_back(node);
    complete &= trace.start(node).has_value() && static_cast<bool>(trace.lane_id(node));
  });
  // Where durations are without children, what is around what is not known.
  if (nodes.empty() || !complete || trace.info().exclusive_durations) return std::nullopt;
  std::ranges::sort(nodes, {}, [&](NodeId node) {
    return std::tuple(*trace.start(node), -trace.duration(node)->count, trace.source_id(node),
                      node);
  });
  HostTimes times;
  times.own_.resize(trace.node_count());
  times.before_.resize(trace.node_count());
  times.position_.assign(trace.node_count(), UINT32_MAX);
  for (size_t i = 0; i < nodes.size(); ++i) {
    times.position_[nodes[i].index()] = static_cast<uint32_t>(i);
  }
  std::map<LaneId, std::pair<ThreadClock, NodeId>> threads;
  for (const NodeId node : nodes) {
    const LaneId lane = trace.lane_id(node);
    auto& [thread, last] =
        threads.try_emplace(lane, ThreadClock(trace, times.own_), NodeId()).first->second;
    std::optional<Nanos> waited_until;
    for (size_t i = 0; i < trace.deps(node).size(); ++i) {
      const NodeId dep = trace.deps(node)[i];
      if (trace.dep_kinds(node)[i] != DepKind::kSync || !times.Precedes(dep, node)) continue;
      if (trace.lane_id(dep) == lane) continue;
      waited_until = std::max(waited_until.value_or(Nanos{INT64_MIN}),
                              *trace.start(dep) + *trace.duration(dep));
    }
    thread.Add(node, waited_until);
    times.before_[node.index()] = last;
    last = node;
  }
  return times;
}

bool HostTimes::Precedes(NodeId a, NodeId b) const {
  return position_[a.index()] < position_[b.index()];
}

}  // namespace etude

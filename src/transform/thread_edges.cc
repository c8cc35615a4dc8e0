#include "src/transform/thread_edges.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace etude {
namespace {

struct Ran {
  Nanos begin;
  Nanos end;
  NodeId node;
};

bool HasChildOnLane(const Trace& tree, std::span<const NodeTime> times, NodeId node) {
  return std::ranges::any_of(tree.children(node), [&](NodeId child) {
    return times[child.index()].lane == times[node.index()].lane && times[child.index()].start;
  });
}

// The last node to begin of those that had ended by `moment`.
const Ran* LastEndedBy(const std::vector<Ran>& lane, Nanos moment) {
  auto next = std::ranges::upper_bound(lane, moment, {}, &Ran::begin);
  // Only nodes around one another are open at a time: programs do not nest that deep.
  constexpr int kOpen = 4096;
  for (int i = 0; i < kOpen && next != lane.begin(); ++i) {
    --next;
    if (next->end <= moment) return &*next;
  }
  return nullptr;
}

}  // namespace

std::vector<OrderEdge> ThreadEdges(const Trace& tree, std::span<const NodeTime> times, Nanos gap) {
  std::vector<std::vector<Ran>> lanes;
  ForEachNode(tree, [&](NodeId node) {
    const NodeTime& time = times[node.index()];
    if (tree.place(node) == Place::kDevice || !time.start || !time.duration || !time.lane) return;
    if (lanes.size() <= time.lane.index()) lanes.resize(time.lane.index() + 1);
    lanes[time.lane.index()].push_back({*time.start, *time.start + *time.duration, node});
  });
  std::erase_if(lanes, [](const std::vector<Ran>& ran) { return ran.empty(); });
  std::vector<OrderEdge> edges;
  if (lanes.size() < 2) return edges;
  for (std::vector<Ran>& ran : lanes) {
    std::ranges::sort(ran, [&](const Ran& a, const Ran& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      if (a.end != b.end) return b.end < a.end;
      return std::tuple(tree.source_id(a.node), a.node) <
             std::tuple(tree.source_id(b.node), b.node);
    });
  }
  for (const std::vector<Ran>& ran : lanes) {
    std::optional<Nanos> busy_until;
    for (const Ran& one : ran) {
      const bool waited = !busy_until || one.begin - *busy_until > gap;
      if (waited) {
        const Ran* found = nullptr;
        for (const std::vector<Ran>& there : lanes) {
          if (&there == &ran) continue;
          const Ran* last = LastEndedBy(there, one.begin);
          if (last == nullptr || (busy_until && last->end <= *busy_until)) continue;
          if (found == nullptr || found->end < last->end) found = last;
        }
        if (found != nullptr) edges.push_back({one.node, found->node});
      }
      const bool is_leaf = !HasChildOnLane(tree, times, one.node);
      // What a node opens after a gap is the same gap.
      const Nanos until = is_leaf ? one.end : waited ? one.begin : *busy_until;
      busy_until = std::max(busy_until.value_or(until), until);
    }
  }
  return edges;
}

}  // namespace etude

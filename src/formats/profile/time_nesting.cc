#include "src/formats/profile/time_nesting.h"

#include <algorithm>
#include <tuple>

namespace etude {

std::vector<Nesting> NestByTime(std::vector<TimedNode> nodes) {
  // Sort containers before the nodes that they contain.
  std::ranges::stable_sort(nodes, {}, [](const TimedNode& node) {
    return std::tuple(node.lane, node.start, node.has_end ? -node.end.count : INT64_MAX);
  });
  std::vector<Nesting> nestings;
  std::vector<const TimedNode*> open;
  for (const TimedNode& node : nodes) {
    const Nanos end = node.has_end ? node.end : node.start;
    // Nodes that ended before, or end within the node, contain neither it nor later nodes.
    const auto is_over = [&](const TimedNode& other) {
      return other.lane != node.lane || other.end < end ||
             (end > node.start && other.end <= node.start);
    };
    while (!open.empty() && is_over(*open.back())) open.pop_back();
    if (!open.empty()) nestings.push_back({.node = node.node, .parent = open.back()->node});
    if (node.has_end) open.push_back(&node);
  }
  return nestings;
}

}  // namespace etude

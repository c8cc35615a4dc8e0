#include "src/formats/profile/time_nesting.h"

#include <algorithm>
#include <tuple>

namespace etude {

std::vector<Nesting> NestByTime(std::vector<TimedNode> nodes) {
  // Containers before what they contain.
  std::ranges::stable_sort(nodes, {}, [](const TimedNode& node) {
    return std::tuple(node.lane, node.start, node.has_end ? -node.end.count : INT64_MAX);
  });
  std::vector<Nesting> nestings;
  std::vector<const TimedNode*> open;
  for (const TimedNode& node : nodes) {
    const Nanos end = node.has_end ? node.end : node.start;
    // What ended before, or ends within the node, contains neither it nor what follows.
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

#include "src/compat/chakra_link/path_graph.h"

#include <algorithm>

#include "src/compat/chakra_link/groups.h"

namespace etude::compat {

std::optional<std::vector<uint32_t>> PathGraph::LongestPath() const {
  std::vector<uint32_t> from;
  std::vector<uint32_t> to;
  for (const PathEdge& edge : edges_) {
    from.push_back(edge.from);
    to.push_back(edge.to);
  }
  const Groups out(from, known_.size());
  const Groups in(to, known_.size());
  std::vector<uint32_t> waiting(known_.size(), 0);
  for (const PathEdge& edge : edges_) ++waiting[edge.to];
  std::vector<uint32_t> order;
  order.reserve(points_.size());
  for (const uint32_t point : points_) {
    if (waiting[point] == 0) order.push_back(point);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const uint32_t edge : out[order[i]]) {
      if (--waiting[edges_[edge].to] == 0) order.push_back(edges_[edge].to);
    }
  }
  if (order.size() != points_.size()) return std::nullopt;

  std::vector<double> length(known_.size(), 0);
  std::vector<uint32_t> best(known_.size(),
                             kNoRow);  // last edge of a longest path
  uint32_t last = order[0];
  for (const uint32_t point : order) {
    for (const uint32_t edge : in[point]) {
      const double sum = length[edges_[edge].from] + edges_[edge].weight;
      if (best[point] != kNoRow && sum <= length[point]) continue;
      length[point] = sum;
      best[point] = edge;
    }
    if (length[point] < 0) {
      length[point] = 0;
      best[point] = kNoRow;
    }
    if (length[point] > length[last]) last = point;
  }
  std::vector<uint32_t> path;
  for (uint32_t point = last; best[point] != kNoRow; point = edges_[best[point]].from) {
    path.push_back(best[point]);
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace etude::compat

#include "src/run/longest_path.h"

#include <algorithm>
#include <numeric>

#include "src/base/container/csr.h"

namespace etude {

LongestPath FindLongestPath(size_t points, std::span<const PathEdge> edges) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> numbers(edges.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  const auto leaving = Csr<uint32_t>::Build(
      points, numbers, [&](uint32_t edge) { return edges[edge].from; },
      [](uint32_t edge) { return edge; });
  std::vector<uint32_t> waits_for(points);
  for (const PathEdge& edge : edges) ++waits_for[edge.to];
  std::vector<Nanos> length(points);
  std::vector<uint32_t> last_edge(points, kNone);
  std::vector<bool> done(points);
  std::vector<uint32_t> ready;
  LongestPath path;
  const auto visit = [&](uint32_t point) {
    done[point] = true;
    for (const uint32_t number : leaving[point]) {
      const PathEdge& edge = edges[number];
      if (done[edge.to]) {
        ++path.dropped;
        continue;
      }
      const Nanos reached = length[point] + edge.weight;
      uint32_t& last = last_edge[edge.to];
      if (last == kNone || reached > length[edge.to] ||
          (reached == length[edge.to] && number < last)) {
        length[edge.to] = reached;
        last = number;
      }
      if (--waits_for[edge.to] == 0) ready.push_back(edge.to);
    }
  };
  for (uint32_t point = 0; point < points; ++point) {
    if (waits_for[point] == 0) ready.push_back(point);
  }
  for (uint32_t next = 0; next < points || !ready.empty();) {
    if (ready.empty()) {
      if (!done[next]) visit(next);  // on a cycle, or behind one
      ++next;
      continue;
    }
    const uint32_t point = ready.back();
    ready.pop_back();
    if (!done[point]) visit(point);
  }
  if (points == 0) return path;
  auto point = static_cast<uint32_t>(std::ranges::max_element(length) - length.begin());
  path.length = length[point];
  while (last_edge[point] != kNone) {
    path.edges.push_back(last_edge[point]);
    point = edges[last_edge[point]].from;
  }
  std::ranges::reverse(path.edges);
  return path;
}

}  // namespace etude

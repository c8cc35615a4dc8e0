#include "src/analysis/collective_ends.h"

#include <algorithm>
#include <unordered_set>

namespace etude {

std::unordered_map<NodeId, Nanos> CollectiveEnds(const RecordedStep& step,
                                                 std::span<const NodeId> collectives) {
  const Trace& trace = step.trace();
  const std::unordered_set<NodeId> wanted(collectives.begin(), collectives.end());
  // Of a node, or of the nearest of its callers that is one.
  const auto collective_around = [&](NodeId node) {
    const auto caller = [&] { return node ? step.position(node) : RecordedStep::kNowhere; };
    while (caller() != RecordedStep::kNowhere && !wanted.contains(node)) {
      node = step.enclosing_operator(caller());
    }
    return wanted.contains(node) ? node : NodeId::None();
  };
  std::unordered_map<NodeId, Nanos> ends;
  for (const NodeId node : step.nodes()) {
    const auto start = trace.start(node);
    const auto duration = trace.duration(node);
    if (!IsGlooLabel(trace.name(node)) || !start || !duration) continue;
    NodeId owner = collective_around(trace.parent(node));
    for (const NodeId dep : trace.deps(node)) {
      if (!owner) owner = collective_around(dep);
    }
    if (!owner) continue;
    const Nanos end = *start + *duration;
    const auto [entry, is_new] = ends.emplace(owner, end);
    if (!is_new) entry->second = std::max(entry->second, end);
  }
  return ends;
}

}  // namespace etude

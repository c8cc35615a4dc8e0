#include "src/trace/callers.h"

#include <algorithm>
#include <unordered_map>

#include "src/trace/operator_name.h"

namespace etude {
namespace {

// Whether what `call` says had ended when `later` began; false if unknown. Clocks of whole
// microseconds let the last callees of an operator begin at its end and take no time.
bool LeftBefore(const NodeTime& call, const NodeTime& later) {
  if (!call.start || !call.duration || !later.start) return false;
  const Nanos end = *call.start + *call.duration;
  return end < *later.start || (end == *later.start && later.duration != Nanos{});
}

}  // namespace

std::vector<uint32_t> FindCallers(const Trace& trace, std::span<const NodeId> nodes,
                                  const std::function<NodeTime(NodeId)>& time_of) {
  const auto count = static_cast<uint32_t>(nodes.size());
  std::vector<uint32_t> position(trace.node_count(), kNoCaller);
  for (uint32_t i = 0; i < count; ++i) position[nodes[i].index()] = i;
  std::vector<bool> label(count);
  for (uint32_t i = 0; i < count; ++i) label[i] = IsGlooLabel(trace.name(nodes[i]));
  const bool disturbed = std::ranges::find(label, true) != label.end();

  std::vector<uint32_t> callers(count, kNoCaller);
  std::vector<NodeTime> times(disturbed ? count : 0);
  std::unordered_map<LaneId, std::vector<uint32_t>> open;  // by the clock, each inside the last one
  for (uint32_t i = 0; i < count; ++i) {
    const NodeId parent = trace.parent(nodes[i]);
    uint32_t& caller = callers[i];
    if (parent && position[parent.index()] < i) caller = position[parent.index()];
    if (!disturbed) continue;
    times[i] = time_of(nodes[i]);
    while (caller != kNoCaller && (label[caller] || LeftBefore(times[caller], times[i]))) {
      caller = callers[caller];
    }
    std::vector<uint32_t>& calls = open[times[i].lane];
    while (!calls.empty() && LeftBefore(times[calls.back()], times[i])) calls.pop_back();
    if (!calls.empty() && (caller == kNoCaller || caller < calls.back())) caller = calls.back();
    if (!label[i] && times[i].duration) calls.push_back(i);
  }
  return callers;
}

}  // namespace etude

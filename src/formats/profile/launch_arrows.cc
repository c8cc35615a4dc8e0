#include "src/formats/profile/launch_arrows.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace etude {

void LaunchArrows::AddTimed(size_t nodes, std::vector<TimedNode>& timed) const {
  for (size_t i = 0; i < arrows_.size(); ++i) {
    if (!arrows_[i].begins) continue;
    timed.push_back({.node = NodeId::FromIndex(nodes + i),
                     .lane = arrows_[i].lane,
                     .start = arrows_[i].at,
                     .end = arrows_[i].at});
  }
}

void LaunchArrows::SetParents(std::span<const NodeId> begins_in,
                              std::span<const UncategorisedEvent> events,
                              TraceBuilder& builder) const {
  std::unordered_map<StringId, NodeId> launchers;
  std::map<std::pair<LaneId, Nanos>, NodeId> ends;
  for (size_t i = 0; i < arrows_.size(); ++i) {
    const Arrow& arrow = arrows_[i];
    if (arrow.begins && begins_in[i]) launchers.emplace(arrow.id, begins_in[i]);
  }
  for (const Arrow& arrow : arrows_) {
    if (arrow.begins) continue;
    const auto launcher = launchers.find(arrow.id);
    if (launcher == launchers.end()) continue;
    ends.emplace(std::pair(arrow.lane, arrow.at), launcher->second);
  }
  if (ends.empty()) return;
  for (const UncategorisedEvent& event : events) {
    const auto start = builder.start(event.node);
    if (!start || builder.place(event.node) != Place::kDevice) continue;
    const LaneId lane = builder.InternLane({.process = event.process, .thread = event.thread});
    const auto end = ends.find({lane, *start});
    if (end != ends.end()) builder.SetParent(event.node, end->second);
  }
}

}  // namespace etude

#include "src/replay/operator_selection.h"

#include <algorithm>
#include <utility>

namespace etude {

OperatorSelection::OperatorSelection(const RecordedStep& step, const DataFlow& flow)
    : step_(step),
      flow_(flow),
      top_(step.top_operators().begin(), step.top_operators().end()),
      nodes_(top_) {}

void OperatorSelection::Keep(const std::function<bool(NodeId)>& keep) {
  std::erase_if(top_, [&](NodeId node) { return !keep(node); });
  nodes_ = top_;
}

void OperatorSelection::Skip(NodeId node, std::string reason) {
  std::erase(nodes_, node);
  skipped_.push_back({node, std::move(reason)});
}

bool OperatorSelection::PartsCover(NodeId node, std::span<const NodeId> parts) const {
  std::unordered_set<StorageVersion> made;
  for (const DataFlow::Use& use : flow_.inputs(node)) made.insert(use.version);
  for (const NodeId part : parts) {
    for (const DataFlow::Use& use : flow_.outputs(part)) made.insert(use.version);
  }
  return std::ranges::all_of(flow_.outputs(node), [&](const DataFlow::Use& use) {
    return !use.version || made.contains(use.version);
  });
}

bool OperatorSelection::UseParts(NodeId node, const std::function<bool(NodeId)>& usable) {
  const std::vector<NodeId> parts = step_.OperatorsBelow(node);
  if (parts.empty() || !PartsCover(node, parts)) return false;
  if (!std::ranges::all_of(parts, usable)) return false;
  const auto place = std::ranges::find(nodes_, node);
  if (place == nodes_.end()) return false;
  const auto after = nodes_.erase(place);
  nodes_.insert(after, parts.begin(), parts.end());
  std::ranges::sort(nodes_, {}, [&](NodeId part) { return step_.position(part); });
  replaced_.push_back(node);
  return true;
}

bool OperatorSelection::RunBeside(NodeId caller, NodeId part) {
  const auto position = [&](NodeId node) { return step_.position(node); };
  const auto place = std::ranges::lower_bound(nodes_, position(part), {}, position);
  if (place != nodes_.end() && *place == part) return false;
  nodes_.insert(place, part);
  beside_.push_back({caller, part});
  return true;
}

std::unordered_set<NodeId> OperatorSelection::ReplayedTop() const {
  std::unordered_set<NodeId> replayed(top_.begin(), top_.end());
  const std::unordered_set<NodeId> tops = replayed;
  for (const Skipped& skipped : skipped_) {
    NodeId node = skipped.node;
    while (node && !tops.contains(node)) node = step_.enclosing_operator(step_.position(node));
    if (node) replayed.erase(node);
  }
  return replayed;
}

}  // namespace etude

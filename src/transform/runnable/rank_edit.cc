#include "src/transform/runnable/rank_edit.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "src/base/container/csr.h"
#include "src/transform/edit/contraction.h"

namespace etude {

RankEdit::RankEdit(RunnableRank& rank)
    : rank_(rank), nodes_(rank.nodes), is_removed_(rank.nodes.size()), names_(rank.names) {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const auto deps = rank.DepsOf(i);
    deps_.emplace_back(deps.begin(), deps.end());
    order_.emplace_back(i, 0);
  }
}

uint32_t RankEdit::NameOf(std::string_view name) {
  const auto known = std::ranges::find(names_, name);
  const auto index = static_cast<uint32_t>(known - names_.begin());
  if (known == names_.end()) names_.emplace_back(name);
  return index;
}

uint32_t RankEdit::AddAfter(uint32_t after, const RunnableNode& node) {
  const auto added = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(node);
  deps_.emplace_back();
  order_.emplace_back(order_[after].first, added);
  is_removed_.push_back(false);
  return added;
}

uint32_t RankEdit::AddBefore(uint32_t next, const RunnableNode& node) {
  const auto added = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(node);
  deps_.push_back(std::exchange(deps_[next], {added}));
  order_.push_back(order_[next]);
  is_removed_.push_back(false);
  return added;
}

void RankEdit::AddDep(uint32_t node, uint32_t before) {
  if (std::ranges::find(deps_[node], before) == deps_[node].end()) deps_[node].push_back(before);
}

Status RankEdit::Finish() {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  std::vector<size_t> waits(nodes_.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    for (const uint32_t dep : deps_[i]) edges.emplace_back(dep, i);
    waits[i] = deps_[i].size();
  }
  const auto dependents = Csr<uint32_t>::Build(
      nodes_.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  using Entry = std::tuple<std::pair<uint32_t, uint32_t>, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (waits[i] == 0) ready.emplace(order_[i], i);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t node = std::get<1>(ready.top());
    ready.pop();
    order.push_back(node);
    for (const uint32_t next : dependents[node]) {
      if (--waits[next] == 0) ready.emplace(order_[next], next);
    }
  }
  if (order.size() != nodes_.size()) return BadInput("found nodes that would wait for each other");
  Contraction contraction;
  std::vector<uint32_t> part_of(nodes_.size());    // number in the contraction
  std::vector<uint32_t> number_of(nodes_.size());  // by part: in the edited rank
  std::vector<RunnableNode> nodes;
  std::vector<uint32_t> deps;
  std::vector<uint64_t> dep_ends;
  std::vector<uint32_t> parts;
  for (uint32_t part = 0; part < order.size(); ++part) {
    const uint32_t node = order[part];
    part_of[node] = part;
    parts.clear();
    for (const uint32_t dep : deps_[node]) parts.push_back(part_of[dep]);
    const auto kept = contraction.Add(parts, !is_removed_[node]);
    if (is_removed_[node]) continue;
    number_of[part] = static_cast<uint32_t>(nodes.size());
    for (const uint32_t dep : kept) deps.push_back(number_of[dep]);
    dep_ends.push_back(deps.size());
    nodes.push_back(nodes_[node]);
  }
  rank_.nodes = std::move(nodes);
  rank_.deps = std::move(deps);
  rank_.dep_ends = std::move(dep_ends);
  rank_.names = names_;
  return {};
}

}  // namespace etude

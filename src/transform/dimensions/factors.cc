#include "src/transform/dimensions/factors.h"

#include <utility>

namespace etude {

FactorId Factors::Add(int64_t size) {
  nodes_.emplace_back().size = size;
  return FactorId::FromIndex(nodes_.size() - 1);
}

FactorId Factors::Find(FactorId factor) const {
  while (nodes_[factor.index()].united) factor = nodes_[factor.index()].united;
  return factor;
}

void Factors::Expand(FactorId factor, std::vector<FactorId>& finest) const {
  std::vector<FactorId> open = {factor};
  while (!open.empty()) {
    const FactorId root = Find(open.back());
    open.pop_back();
    const Node& node = nodes_[root.index()];
    if (node.inner) {
      open.push_back(node.inner);
      open.push_back(node.outer);
    } else {
      finest.push_back(root);
    }
  }
}

std::vector<FactorId> Factors::Expand(std::span<const FactorId> factors) const {
  std::vector<FactorId> finest;
  for (const FactorId factor : factors) Expand(factor, finest);
  return finest;
}

void Factors::Split(FactorId root, int64_t inner) {
  // A root without parts: the parts have its limits.
  Node part = nodes_[root.index()];
  const int64_t outer = part.size / inner;
  part.members = 1;
  part.size = outer;
  nodes_.push_back(part);
  nodes_[root.index()].outer = FactorId::FromIndex(nodes_.size() - 1);
  part.size = inner;
  nodes_.push_back(part);
  nodes_[root.index()].inner = FactorId::FromIndex(nodes_.size() - 1);
}

void Factors::UniteRoots(FactorId a, FactorId b) {
  if (a == b) return;
  if (nodes_[a.index()].members < nodes_[b.index()].members) std::swap(a, b);
  Node& into = nodes_[a.index()];
  Node& from = nodes_[b.index()];
  for (size_t i = 0; i < into.limits.size(); ++i) {
    if (!into.limits[i]) into.limits[i] = from.limits[i];
  }
  into.members += from.members;
  from.united = a;
}

bool Factors::Unite(std::span<const FactorId> a, std::span<const FactorId> b) {
  // The factors that are not united yet, the fastest last.
  std::vector<FactorId> left(a.begin(), a.end());
  std::vector<FactorId> right(b.begin(), b.end());
  const auto take_last = [&](std::vector<FactorId>& list) -> std::optional<FactorId> {
    if (list.empty()) return std::nullopt;
    for (;;) {
      const FactorId root = Find(list.back());
      list.pop_back();
      const Node& node = nodes_[root.index()];
      if (!node.inner) return root;
      list.push_back(node.outer);
      list.push_back(node.inner);
    }
  };
  for (;;) {
    const auto x = take_last(left);
    const auto y = take_last(right);
    if (!x && !y) return true;
    if (!x || !y) return false;
    const int64_t of_x = size(*x);
    const int64_t of_y = size(*y);
    if (of_x == of_y) {
      UniteRoots(*x, *y);
      continue;
    }
    const bool is_left_larger = of_x > of_y;
    const FactorId larger = is_left_larger ? *x : *y;
    const int64_t smaller = is_left_larger ? of_y : of_x;
    if (smaller < 1 || size(larger) % smaller != 0) return false;
    Split(larger, smaller);
    left.push_back(*x);
    right.push_back(*y);
  }
}

bool Factors::SplitAt(std::span<const FactorId> factors, int64_t inner) {
  std::vector<FactorId> finest = Expand(factors);
  while (inner > 1 && !finest.empty()) {
    const int64_t last = size(finest.back());
    if (inner % last == 0) {
      inner /= last;
      finest.pop_back();
      continue;
    }
    if (last % inner != 0) return false;
    Split(finest.back(), inner);
    return true;
  }
  return inner == 1;
}

void Factors::Limit(std::span<const FactorId> factors, FactorLimit limit, NodeId by) {
  for (const FactorId factor : Expand(factors)) {
    NodeId& first = nodes_[factor.index()].limits[static_cast<size_t>(limit)];
    if (!first) first = by;
  }
}

}  // namespace etude

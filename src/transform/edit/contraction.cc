#include "src/transform/edit/contraction.h"

#include <algorithm>
#include <functional>

namespace etude {
namespace {

constexpr uint32_t kNoRow = UINT32_MAX;
// Beyond this number, some implied dependencies stay.
constexpr size_t kMaxReach = 64;

}  // namespace

uint32_t Contraction::Store(std::span<const uint32_t> list) {
  items_.insert(items_.end(), list.begin(), list.end());
  begins_.push_back(items_.size());
  return static_cast<uint32_t>(begins_.size() - 2);
}

void Contraction::Merge(std::span<const uint32_t> deps) {
  merged_.clear();
  for (const uint32_t dep : deps) {
    for (const uint32_t kept : List(list_of_[dep])) {
      uint32_t& last = last_[chain_of_[kept]];
      if (last == kNoRow) touched_.push_back(chain_of_[kept]);
      // Numbers ascend along a chain.
      last = last == kNoRow ? kept : std::max(last, kept);
    }
  }
  for (const uint32_t chain : touched_) {
    merged_.push_back(last_[chain]);
    last_[chain] = kNoRow;
  }
  touched_.clear();
  std::ranges::sort(merged_);
}

void Contraction::Reduce() {
  if (merged_.size() < 2) return;
  // Later nodes wait for earlier ones, never the other way round.
  for (const uint32_t later : merged_) {
    for (const uint32_t reached : List(reach_of_[later])) {
      uint32_t& last = last_[chain_of_[reached]];
      if (last == kNoRow) touched_.push_back(chain_of_[reached]);
      last = last == kNoRow ? reached : std::max(last, reached);
    }
  }
  std::erase_if(merged_, [&](uint32_t dep) {
    const uint32_t last = last_[chain_of_[dep]];
    return last != kNoRow && last >= dep;
  });
  for (const uint32_t chain : touched_) last_[chain] = kNoRow;
  touched_.clear();
}

// Stores the direct and indirect dependencies of `node`, which waits for merged_.
uint32_t Contraction::StoreReach() {
  reach_.assign(merged_.begin(), merged_.end());
  for (const uint32_t dep : merged_) {
    const auto list = List(reach_of_[dep]);
    reach_.insert(reach_.end(), list.begin(), list.end());
  }
  // The last one of each chain.
  std::ranges::sort(reach_, std::greater<>());
  size_t kept = 0;
  for (const uint32_t node : reach_) {
    uint32_t& last = last_[chain_of_[node]];
    if (last != kNoRow) continue;
    last = node;
    touched_.push_back(chain_of_[node]);
    reach_[kept++] = node;
  }
  for (const uint32_t chain : touched_) last_[chain] = kNoRow;
  touched_.clear();
  reach_.resize(std::min(kept, kMaxReach));
  return Store(reach_);
}

uint32_t Contraction::ChainAfter(std::span<const uint32_t> deps) {
  for (const uint32_t dep : deps) {
    if (tail_[chain_of_[dep]] == dep) return chain_of_[dep];
  }
  tail_.push_back(kNoRow);
  last_.push_back(kNoRow);
  return static_cast<uint32_t>(tail_.size() - 1);
}

std::span<const uint32_t> Contraction::Add(std::span<const uint32_t> deps, bool keep) {
  const auto node = static_cast<uint32_t>(list_of_.size());
  Merge(deps);
  Reduce();
  reach_of_.push_back(keep ? StoreReach() : 0);
  chain_of_.push_back(kNoRow);
  if (keep) {
    const uint32_t chain = ChainAfter(merged_);
    chain_of_[node] = chain;
    tail_[chain] = node;
    list_of_.push_back(Store(std::span(&node, 1)));
    return merged_;
  }
  // Most removed nodes add nothing to their dependencies.
  const auto same = std::ranges::find_if(
      deps, [&](uint32_t dep) { return std::ranges::equal(List(list_of_[dep]), merged_); });
  list_of_.push_back(same == deps.end() ? Store(merged_) : list_of_[*same]);
  return merged_;
}

}  // namespace etude

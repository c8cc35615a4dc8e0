#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etude {

// Takes nodes out of a graph so that those that stay wait for each other as before: a kept node
// waits for the last kept ones on all ways by which it waited. Not thread-safe.
//
// Kept nodes are strung into chains in which each waits for the one before it, so that of each
// chain the last one is enough: O(nodes x chains), and a chain per stream in traces of devices.
class Contraction {
 public:
  // Adds the next node; nodes are numbered from 0 and come after what they wait for. Returns what
  // the node waits for now, ascending; the span is valid until the next call.
  std::span<const uint32_t> Add(std::span<const uint32_t> deps, bool keep);

  // Numbers held: what bounds memory, for callers that limit it.
  uint64_t size() const { return items_.size(); }

 private:
  std::span<const uint32_t> List(uint32_t list) const {
    return {items_.data() + begins_[list], begins_[list + 1] - begins_[list]};
  }
  uint32_t Store(std::span<const uint32_t> list);
  void Merge(std::span<const uint32_t> deps);
  void Reduce();
  uint32_t StoreReach();
  uint32_t ChainAfter(std::span<const uint32_t> deps);

  // The last kept nodes up to each node, itself included: a number of a list.
  std::vector<uint32_t> list_of_;
  std::vector<uint32_t> reach_of_;  // likewise: what kept ones wait for, directly or not
  std::vector<uint32_t> items_;
  std::vector<uint64_t> begins_{0, 0};  // list 0 is empty
  std::vector<uint32_t> chain_of_;      // by node; only of kept ones
  std::vector<uint32_t> tail_;          // by chain: its last node
  std::vector<uint32_t> last_;          // by chain: its last node in the list being made
  std::vector<uint32_t> touched_;       // the chains of that list
  std::vector<uint32_t> merged_;
  std::vector<uint32_t> reach_;
};

}  // namespace etude

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etude {

// Removes nodes from a graph and keeps the order of the others: a kept node waits for the last kept
// ones on all its dependency paths. Not thread-safe.
//
// Kept nodes form chains in which each waits for the previous one, so that only the last one of
// each chain is needed: O(nodes x chains), with one chain per stream in traces of devices.
class Contraction {
 public:
  // Adds the next node; nodes are numbered from 0 and come after their dependencies. Returns the
  // new dependencies of the node, ascending; the span is valid until the next call.
  std::span<const uint32_t> Add(std::span<const uint32_t> deps, bool keep);

  // Returns the number of stored items, for callers that limit memory.
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

  // By node: list of the last kept nodes up to it, itself included.
  std::vector<uint32_t> list_of_;
  std::vector<uint32_t> reach_of_;  // by node: list of direct and indirect dependencies of kept
                                    // nodes
  std::vector<uint32_t> items_;
  std::vector<uint64_t> begins_{0, 0};  // list 0 is empty
  std::vector<uint32_t> chain_of_;      // by node; only for kept ones
  std::vector<uint32_t> tail_;          // by chain: its last node
  std::vector<uint32_t> last_;          // by chain: its last node in the current list
  std::vector<uint32_t> touched_;       // chains of that list
  std::vector<uint32_t> merged_;
  std::vector<uint32_t> reach_;
};

}  // namespace etude

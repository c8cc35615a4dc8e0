#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Adds and removes nodes and dependencies of a runnable rank. Nodes of the rank keep their numbers
// until Finish, and added ones get the next numbers. Not thread-safe.
class RankEdit {
 public:
  // `rank` must outlive the edit, and changes in Finish.
  explicit RankEdit(RunnableRank& rank);

  RunnableNode& node(uint32_t node) { return nodes_[node]; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  std::span<const uint32_t> deps(uint32_t node) const { return deps_[node]; }
  // Returns the number of a name in the rank.
  uint32_t NameOf(std::string_view name);

  // Adds a node without dependencies. Among the nodes that may come next, it is the one after
  // `after`.
  uint32_t AddAfter(uint32_t after, const RunnableNode& node);
  // Adds a node that waits for what `next` waited for, and for which alone `next` now waits.
  uint32_t AddBefore(uint32_t next, const RunnableNode& node);
  void SetDeps(uint32_t node, std::vector<uint32_t> deps) { deps_[node] = std::move(deps); }
  void AddDep(uint32_t node, uint32_t before);
  void RemoveDep(uint32_t node, uint32_t before) { std::erase(deps_[node], before); }
  // Removes a node. Nodes that waited for it wait for what it waited for.
  void Remove(uint32_t node) { is_removed_[node] = true; }
  void Keep(uint32_t node) { is_removed_[node] = false; }

  // Changes the rank. kBadInput if nodes wait for each other; the rank is then unchanged.
  Status Finish();

 private:
  RunnableRank& rank_;
  std::vector<RunnableNode> nodes_;
  std::vector<std::vector<uint32_t>> deps_;
  std::vector<std::pair<uint32_t, uint32_t>> order_;  // place of a recorded node, and after it
  std::vector<bool> is_removed_;
  std::vector<std::string> names_;
};

}  // namespace etude

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/sim/engine/signature.h"
#include "src/sim/machine/machine.h"
#include "src/sim/models/queued_links.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Classes of the links of a network in which messages delay each other, refined together with
// classes of ranks. In the end, the messages of a class of ranks cross links of the same classes on
// their way, and all links of a class carry the same messages.
class LinkClasses {
 public:
  // Returns whether messages delay each other.
  static bool Needs(const SimMachine& machine) {
    return machine.congestion || machine.graph != nullptr;
  }
  // Requires Needs(), and paths that do not depend on the load.
  explicit LinkClasses(const SimMachine& machine);

  // Adds the next rank, with the ranks that it may send messages to. Corresponding partners of
  // ranks of a class must have the same place in the list. Returns false if the paths are too many.
  bool AddRank(std::span<const int64_t> partners);
  // Adds the classes of the links on the paths of each rank to its signature, and refines the
  // classes of links by the given ones of ranks. Returns the number of classes of links.
  size_t Refine(std::span<const uint32_t> rank_classes, std::vector<Signature>& signatures);
  // Returns whether each link carries at most one message of a class of ranks at a time, if it
  // carries one message after the other.
  bool QueuesFit(std::span<const uint32_t> rank_classes) const;

  size_t count() const { return count_; }
  std::vector<uint32_t> TakeClasses() { return std::move(classes_); }

 private:
  static constexpr size_t kMostHops = size_t{1} << 24;  // of all paths

  void FindPath(int64_t from, int64_t to);
  // Calls `visit` with the rank, the place of the partner, the place on the path, and the link.
  template <typename Visit>
  void ForEachHop(const Visit& visit) const;

  std::optional<QueuedLinks> queued_;
  std::optional<NetworkRoutes> routes_;
  std::vector<uint32_t> hops_;     // links of all paths
  std::vector<size_t> path_ends_;  // in hops_
  std::vector<size_t> rank_ends_;  // in path_ends_
  std::vector<uint32_t> classes_;  // by link
  size_t count_ = 0;
};

}  // namespace etude

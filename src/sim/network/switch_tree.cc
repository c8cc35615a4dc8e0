#include "src/sim/network/switch_tree.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Finds trees in the links of one dimension.
class TreeFinder {
 public:
  TreeFinder(const NetworkGraph& graph, std::span<const int64_t> members, size_t dim)
      : graph_(graph), members_(members), dim_(dim) {}

  // Returns the node of the root; kNone: no device connects the members.
  uint32_t FindRoot() const {
    // A node that members reach, and how far it is from them.
    struct Reached {
      size_t members = 0;
      uint64_t links = 0;  // summed over the members
    };
    const uint32_t size = graph_.LineSize(Node(0), dim_);
    for (uint32_t depth = 1; depth < size; ++depth) {
      std::unordered_map<uint32_t, Reached> reached;
      bool grows = false;
      for (size_t i = 0; i < members_.size(); ++i) {
        const uint32_t farthest = VisitFrom(Node(i), depth, [&](uint32_t node, uint32_t links) {
          Reached& one = reached[node];
          ++one.members;
          one.links += links;
        });
        grows = grows || farthest == depth;
      }
      std::vector<std::pair<uint64_t, uint32_t>> found;  // links, node
      for (const auto& [node, one] : reached) {
        if (one.members == members_.size()) found.emplace_back(one.links, node);
      }
      if (found.empty() && grows) continue;
      if (found.empty()) return kNone;
      std::ranges::sort(found);
      const auto worse = std::ranges::find_if(
          found, [&](const auto& other) { return other.first > found[0].first; });
      const auto choices = static_cast<uint64_t>(worse - found.begin());
      return found[Mixed(static_cast<uint64_t>(members_[0])) % choices].second;
    }
    return kNone;
  }

  // Returns the links between the root and each member, in the order in which data take them;
  // empty for members without a way. `up`: to the root.
  std::vector<std::vector<uint32_t>> Ways(uint32_t root, bool up) const {
    std::unordered_map<uint32_t, uint32_t> link_of;  // by node: the next link on its way
    std::vector<uint32_t> queue = {root};
    const auto near_end = [&](uint32_t link) {
      return up ? graph_.links()[link].to : graph_.links()[link].from;
    };
    const auto far_end = [&](uint32_t link) {
      return up ? graph_.links()[link].from : graph_.links()[link].to;
    };
    std::unordered_map<uint32_t, uint32_t> distance = {{root, 0}};
    for (size_t i = 0; i < queue.size(); ++i) {
      const uint32_t node = queue[i];
      if (IsNpu(node)) continue;
      const uint32_t here = distance.at(node);
      for (const uint32_t link : up ? graph_.LinksTo(node, dim_) : graph_.LinksFrom(node, dim_)) {
        const uint32_t other = far_end(link);
        const auto [found, is_new] = distance.try_emplace(other, here + 1);
        if (is_new) queue.push_back(other);
        if (found->second != here + 1) continue;
        const auto [best, is_first] = link_of.try_emplace(other, link);
        const auto rate = [&](uint32_t one) { return graph_.links()[one].bandwidth; };
        if (!is_first && rate(link) > rate(best->second)) best->second = link;
      }
    }
    std::vector<std::vector<uint32_t>> ways(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) {
      for (uint32_t node = Node(i); node != root;) {
        const auto link = link_of.find(node);
        if (link == link_of.end()) break;
        ways[i].push_back(link->second);
        node = near_end(link->second);
      }
      if (!up) std::ranges::reverse(ways[i]);
    }
    return ways;
  }

 private:
  uint32_t Node(size_t member) const { return static_cast<uint32_t>(members_[member]); }
  bool IsNpu(uint32_t node) const { return static_cast<int64_t>(node) < graph_.npus(); }
  static uint64_t Mixed(uint64_t value) {
    value = (value + 1) * 0x9E3779B97F4A7C15ull;
    return value ^ (value >> 29);
  }
  // Visits the devices within `depth` links from an NPU. Returns the largest distance of one.
  template <typename Visit>
  uint32_t VisitFrom(uint32_t npu, uint32_t depth, Visit visit) const {
    std::unordered_map<uint32_t, uint32_t> distance = {{npu, 0}};
    std::vector<uint32_t> queue = {npu};
    uint32_t farthest = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      const uint32_t here = distance.at(queue[i]);
      if (here == depth) continue;
      for (const uint32_t link : graph_.LinksFrom(queue[i], dim_)) {
        const uint32_t other = graph_.links()[link].to;
        if (IsNpu(other) || !distance.try_emplace(other, here + 1).second) continue;
        queue.push_back(other);
        farthest = here + 1;
        visit(other, here + 1);
      }
    }
    return farthest;
  }

  const NetworkGraph& graph_;
  const std::span<const int64_t> members_;
  const size_t dim_;
};

}  // namespace

Result<SwitchTree> FindSwitchTree(const NetworkGraph& graph, std::span<const int64_t> members) {
  size_t dim = graph.dims().size();
  for (size_t i = 0; i < graph.dims().size(); ++i) {
    const bool differs = std::ranges::any_of(members, [&](int64_t member) {
      return graph.Coordinate(member, i) != graph.Coordinate(members[0], i);
    });
    if (!differs) continue;
    if (dim < graph.dims().size()) {
      return BadInput(
          fmt::format("found {} ranks that differ in dimensions {} and {} of the network, expected "
                      "ranks of one dimension for a collective in the network",
                      members.size(), dim, i));
    }
    dim = i;
  }
  const TreeFinder finder(graph, members, dim);
  SwitchTree tree{.root = finder.FindRoot()};
  const auto unconnected = [&] {
    return BadInput(
        fmt::format("found no switch that connects the {} ranks of the collective in {}, expected "
                    "one for a collective in the network",
                    members.size(), graph.dims()[dim].topology));
  };
  if (tree.root == kNone) return unconnected();
  tree.up = finder.Ways(tree.root, /*up=*/true);
  tree.down = finder.Ways(tree.root, /*up=*/false);
  const auto is_empty = [](const std::vector<uint32_t>& way) { return way.empty(); };
  if (std::ranges::any_of(tree.down, is_empty)) return unconnected();
  return tree;
}

}  // namespace etude

#include "src/transform/runnable/rank_order.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/base/text/quantity.h"

namespace etude {
namespace {

constexpr std::string_view kStride = "stride:";

// Returns the place of each rank; empty if the order is none of `count` ranks.
std::vector<int64_t> PlacesOf(const RankOrder& order, int64_t count) {
  std::vector<int64_t> places(static_cast<size_t>(count), -1);
  if (order.ranks.empty()) {
    if (count % order.stride != 0) return {};
    const int64_t each = count / order.stride;
    for (int64_t rank = 0; rank < count; ++rank) {
      places[static_cast<size_t>(rank)] = rank % order.stride * each + rank / order.stride;
    }
    return places;
  }
  if (std::ssize(order.ranks) != count) return {};
  for (size_t place = 0; place < order.ranks.size(); ++place) {
    const int64_t rank = order.ranks[place];
    if (rank >= count || places[static_cast<size_t>(rank)] >= 0) return {};
    places[static_cast<size_t>(rank)] = static_cast<int64_t>(place);
  }
  return places;
}

void Renumber(const std::vector<int64_t>& places, RunnableRank& rank) {
  const auto place_of = [&](int64_t number) {
    const bool is_known = number >= 0 && number < std::ssize(places);
    return is_known ? places[static_cast<size_t>(number)] : number;
  };
  rank.rank = place_of(*rank.rank);
  if (rank.copy_of) rank.copy_of = place_of(*rank.copy_of);
  // Roots are positions among the members of a group.
  std::vector<std::vector<int64_t>> members;  // by group, as recorded, with their places
  for (RunnableGroup& group : rank.groups) {
    std::vector<int64_t>& own = members.emplace_back();
    if (!group.ranks) continue;
    for (int64_t& member : *group.ranks) member = place_of(member);
    own = *group.ranks;
    std::ranges::sort(*group.ranks);
  }
  for (RunnableNode& node : rank.nodes) {
    if (node.peer) node.peer = place_of(*node.peer);
    if (!node.root) continue;
    const bool is_of_some = node.group != RunnableNode::kNone && !members[node.group].empty();
    if (!is_of_some) {
      node.root = place_of(*node.root);
    } else if (*node.root >= 0 && *node.root < std::ssize(members[node.group])) {
      const int64_t root = members[node.group][static_cast<size_t>(*node.root)];
      const std::vector<int64_t>& sorted = *rank.groups[node.group].ranks;
      node.root = std::ranges::find(sorted, root) - sorted.begin();
    }
  }
}

}  // namespace

Result<RankOrder> RankOrder::Parse(std::string_view text) {
  RankOrder order;
  bool is_right = !text.empty();
  if (text.starts_with(kStride)) {
    const auto stride = ParseWhole(text.substr(kStride.size()));
    is_right = stride && *stride >= 1;
    if (is_right) order.stride = *stride;
  } else {
    std::set<int64_t> known;
    for (std::string_view rest = text; is_right;) {
      const size_t comma = rest.find(',');
      const auto rank = ParseWhole(rest.substr(0, comma));
      is_right = rank && *rank >= 0 && known.insert(*rank).second;
      if (is_right) order.ranks.push_back(*rank);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  if (is_right) return order;
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("--rank-order: found '{}', expected each rank once, such as 0,2,1,3, "
                  "or stride:N to make ranks at distance N neighbours",
                  text));
}

Status ReorderRanks(const RankOrder& order, std::vector<RunnableRank>& ranks) {
  const std::vector<int64_t> places = PlacesOf(order, std::ssize(ranks));
  if (places.empty()) {
    return BadInput(fmt::format(
        "found {}, expected {}", FormatCount(ranks.size(), "rank"),
        order.ranks.empty()
            ? fmt::format("a multiple of the distance {}", order.stride)
            : fmt::format("the {} of the order", FormatCount(order.ranks.size(), "rank"))));
  }
  for (RunnableRank& rank : ranks) Renumber(places, rank);
  std::ranges::sort(ranks, {}, [](const RunnableRank& rank) { return *rank.rank; });
  return {};
}

}  // namespace etude

#include "src/transform/astra_sim/astra_groups.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace etude {
namespace {

// Returns the number in a group's name, if ASTRA-sim treats it as a separate group.
std::optional<int64_t> NumberOfName(std::string_view name) {
  int64_t number = 0;
  if (name.empty() || name.size() > 9) return std::nullopt;
  for (const char digit : name) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  return number > 0 && std::to_string(number) == name ? std::optional(number) : std::nullopt;
}

}  // namespace

AstraGroups::AstraGroups(const AstraRank& rank, int64_t world_size)
    : rank_(&rank), world_size_(world_size) {
  for (const AstraGroup& group : rank.groups) {
    auto& members = listed_.emplace_back();
    if (!group.ranks) continue;
    const auto outside = [&](int64_t member) { return member < 0 || member >= world_size; };
    if (IsWorld(*group.ranks)) {
      members = AstraMembers{.size = world_size};
    } else if (std::ranges::any_of(*group.ranks, outside) ||
               std::ranges::count(*group.ranks, *rank.rank) != 1) {
      members = AstraMembers{};
    } else if (group.ranks->size() == 1) {
      members = AstraMembers{.size = 1};
    } else {
      members =
          AstraMembers{.size = static_cast<int64_t>(group.ranks->size()), .ranks = &*group.ranks};
    }
  }
}

bool AstraGroups::IsWorld(const std::vector<int64_t>& members) const {
  if (members.empty()) return true;
  if (std::cmp_not_equal(members.size(), world_size_)) return false;
  const std::set<int64_t> distinct(members.begin(), members.end());
  return distinct.size() == members.size() && *distinct.begin() == 0 &&
         *distinct.rbegin() == world_size_ - 1;
}

AstraMembers AstraGroups::MembersOf(const AstraNode& node) const {
  const AstraGroup* group = node.group == AstraNode::kNone ? nullptr : &rank_->groups[node.group];
  if (group != nullptr && listed_[node.group]) return *listed_[node.group];
  auto size = node.group_size;
  if (!size && group != nullptr) size = group->size;
  if (group != nullptr && group->of_some && !size) return {};
  if (size) return {.size = *size == 1 || *size == world_size_ ? *size : 0};
  return {.size = group != nullptr && NumberOfName(group->name) ? 0 : world_size_};
}

void TakeCallers(std::vector<AstraRank>& ranks, bool all_recorded) {
  struct Calls {
    bool is_listed = false;
    std::optional<int64_t> size;  // as stated
    std::vector<int64_t> ranks;
  };
  std::map<std::string, Calls, std::less<>> calls;  // by name
  size_t recorded = 0;
  for (const AstraRank& rank : ranks) {
    if (rank.copy_of) continue;
    ++recorded;
    std::vector<bool> called(rank.groups.size());
    for (const AstraNode& node : rank.nodes) {
      if (node.kind != NodeKind::kCollective || node.group == AstraNode::kNone) continue;
      called[node.group] = true;
      if (node.group_size) calls[rank.groups[node.group].name].size = node.group_size;
    }
    for (size_t i = 0; i < rank.groups.size(); ++i) {
      Calls& of = calls[rank.groups[i].name];
      of.is_listed = of.is_listed || rank.groups[i].ranks;
      if (rank.groups[i].size) of.size = rank.groups[i].size;
      if (called[i]) of.ranks.push_back(*rank.rank);
    }
  }
  for (AstraRank& rank : ranks) {
    for (AstraGroup& group : rank.groups) {
      const Calls& of = calls[group.name];
      if (of.is_listed || of.ranks.empty()) continue;
      const bool is_all = of.ranks.size() == recorded;
      const bool fits = !of.size || std::cmp_equal(*of.size, of.ranks.size());
      if (fits && (of.size || all_recorded) && recorded > 1) {
        group.ranks = of.ranks;
      } else {
        group.of_some = !is_all;
      }
    }
  }
}

std::vector<uint32_t> AstraGroups::UsedGroups() const {
  std::vector<bool> used(listed_.size());
  for (const AstraNode& node : rank_->nodes) {
    if (node.kind == NodeKind::kCollective && node.group != AstraNode::kNone) {
      used[node.group] = true;
    }
  }
  std::vector<uint32_t> groups;
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (used[i] && listed_[i] && listed_[i]->ranks != nullptr) groups.push_back(i);
  }
  return groups;
}

AstraGroupIds NumberGroups(const std::vector<AstraRank>& ranks,
                           const std::vector<AstraGroups>& groups, int64_t world_size) {
  using Key = std::pair<std::string, std::vector<int64_t>>;
  AstraGroupIds result;
  std::map<Key, int64_t> ids;
  const auto key = [&](size_t rank, uint32_t group) {
    return Key(ranks[rank].groups[group].name, *ranks[rank].groups[group].ranks);
  };
  std::vector<std::vector<uint32_t>> used;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    used.push_back(groups[rank].UsedGroups());
    for (const uint32_t group : used.back()) ids.emplace(key(rank, group), 0);
  }
  for (auto& [group, id] : ids) {
    const auto number = NumberOfName(group.first);
    if (number && result.groups.emplace(*number, group.second).second) id = *number;
  }
  int64_t next = 1;
  const auto free_id = [&] {
    while (result.groups.contains(next)) ++next;
    return next;
  };
  for (auto& [group, id] : ids) {
    if (id != 0) continue;
    id = free_id();
    result.groups.emplace(id, group.second);
    ++result.renamed;
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    result.ids.emplace_back(ranks[rank].groups.size());
    for (const uint32_t group : used[rank]) result.ids[rank][group] = ids.at(key(rank, group));
  }
  if (ids.empty()) return result;
  // ASTRA-sim numbers the collectives of all ranks together with those of groups, so ranks in
  // different numbers of groups would no longer match. Collectives of a listed group are numbered
  // separately.
  result.world = free_id();
  std::vector<int64_t>& all = result.groups[result.world];
  for (int64_t rank = 0; rank < world_size; ++rank) all.push_back(rank);
  return result;
}

}  // namespace etude

#include "src/transform/astra_groups.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace etude {
namespace {

// The number that a group's name is, if ASTRA-sim takes it for a group of its own.
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
  if (size) return {.size = *size == 1 || *size == world_size_ ? *size : 0};
  return {.size = group != nullptr && NumberOfName(group->name) ? 0 : world_size_};
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
  // ASTRA-sim numbers the collectives of all ranks together with those of groups: ranks that were
  // in more groups than others would not find each other any more. Those of a listed group have
  // numbers of their own.
  result.world = free_id();
  std::vector<int64_t>& all = result.groups[result.world];
  for (int64_t rank = 0; rank < world_size; ++rank) all.push_back(rank);
  return result;
}

}  // namespace etude

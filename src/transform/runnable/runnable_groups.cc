#include "src/transform/runnable/runnable_groups.h"

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

RunnableGroups::RunnableGroups(const RunnableRank& rank, int64_t world_size)
    : rank_(&rank), world_size_(world_size) {
  for (const RunnableGroup& group : rank.groups) {
    auto& members = listed_.emplace_back();
    if (!group.ranks) continue;
    const auto outside = [&](int64_t member) { return member < 0 || member >= world_size; };
    if (IsWorld(*group.ranks)) {
      members = GroupMembers{.size = world_size};
    } else if (std::ranges::any_of(*group.ranks, outside) ||
               std::ranges::count(*group.ranks, *rank.rank) != 1) {
      members = GroupMembers{};
    } else if (group.ranks->size() == 1) {
      members = GroupMembers{.size = 1};
    } else {
      members =
          GroupMembers{.size = static_cast<int64_t>(group.ranks->size()), .ranks = &*group.ranks};
    }
  }
}

bool RunnableGroups::IsWorld(const std::vector<int64_t>& members) const {
  if (members.empty()) return true;
  if (std::cmp_not_equal(members.size(), world_size_)) return false;
  const std::set<int64_t> distinct(members.begin(), members.end());
  return distinct.size() == members.size() && *distinct.begin() == 0 &&
         *distinct.rbegin() == world_size_ - 1;
}

GroupMembers RunnableGroups::MembersOf(const RunnableNode& node) const {
  const RunnableGroup* group =
      node.group == RunnableNode::kNone ? nullptr : &rank_->groups[node.group];
  if (group != nullptr && listed_[node.group]) return *listed_[node.group];
  auto size = node.group_size;
  if (!size && group != nullptr) size = group->size;
  if (group != nullptr && group->of_some && !size) return {};
  if (size) return {.size = *size == 1 || *size == world_size_ ? *size : 0};
  return {.size = group != nullptr && NumberOfName(group->name) ? 0 : world_size_};
}

void TakeCallers(std::vector<RunnableRank>& ranks, bool all_recorded) {
  struct Calls {
    bool is_listed = false;
    std::optional<int64_t> size;  // as stated
    std::vector<int64_t> ranks;
  };
  std::map<std::string, Calls, std::less<>> calls;  // by name
  size_t recorded = 0;
  for (const RunnableRank& rank : ranks) {
    if (rank.copy_of) continue;
    ++recorded;
    std::vector<bool> called(rank.groups.size());
    for (const RunnableNode& node : rank.nodes) {
      if (node.kind != NodeKind::kCollective || node.group == RunnableNode::kNone) continue;
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
  for (RunnableRank& rank : ranks) {
    for (RunnableGroup& group : rank.groups) {
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

std::vector<uint32_t> RunnableGroups::UsedGroups() const {
  std::vector<bool> used(listed_.size());
  for (const RunnableNode& node : rank_->nodes) {
    if (node.kind == NodeKind::kCollective && node.group != RunnableNode::kNone) {
      used[node.group] = true;
    }
  }
  std::vector<uint32_t> groups;
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (used[i] && listed_[i] && listed_[i]->ranks != nullptr) groups.push_back(i);
  }
  return groups;
}

RunnableGroupIds NumberGroups(const std::vector<RunnableRank>& ranks,
                              const std::vector<RunnableGroups>& groups) {
  using Key = std::pair<std::string, std::vector<int64_t>>;
  RunnableGroupIds result;
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
  return result;
}

}  // namespace etude

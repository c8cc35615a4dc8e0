#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// The members of a collective's group.
struct GroupMembers {
  int64_t size = 0;                             // 0: unknown
  const std::vector<int64_t>* ranks = nullptr;  // nullptr: all ranks, one, or unknown
};

// The members of the groups of `rank`, which must outlive this object, in a job of `world_size`
// ranks.
class RunnableGroups {
 public:
  RunnableGroups(const RunnableRank& rank, int64_t world_size);

  // Returns the members of the group of a node that communicates.
  GroupMembers MembersOf(const RunnableNode& node) const;
  // Returns the numbers of the rank's groups that do not contain all ranks and in which collectives
  // run.
  std::vector<uint32_t> UsedGroups() const;

 private:
  bool IsWorld(const std::vector<int64_t>& members) const;

  const RunnableRank* rank_;
  int64_t world_size_;
  std::vector<std::optional<GroupMembers>> listed_;  // by group; nullopt: the trace lists none
};

// Sets the ranks of groups that no trace lists to the ranks that call them, as in simulated jobs.
// Requires that the stated size of the group equals their number, or that all ranks of the job are
// recorded (`all_recorded`). For other groups, records whether all recorded ranks call them.
void TakeCallers(std::vector<RunnableRank>& ranks, bool all_recorded);

// Groups that do not contain all ranks and in which collectives run, by number.
struct RunnableGroupIds {
  std::vector<std::vector<int64_t>> ids;           // by rank and its group; 0: not such a group
  std::map<int64_t, std::vector<int64_t>> groups;  // by id
  uint64_t renamed = 0;  // groups whose id differs from the number in their name
};

// Gives each such group an id: the number in its name if no other group has it, otherwise the next
// free number. `groups` are those of `ranks`.
RunnableGroupIds NumberGroups(const std::vector<RunnableRank>& ranks,
                              const std::vector<RunnableGroups>& groups);

}  // namespace etude

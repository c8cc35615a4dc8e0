#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Who takes part in a collective.
struct GroupMembers {
  int64_t size = 0;                             // 0: unknown
  const std::vector<int64_t>* ranks = nullptr;  // nullptr: all ranks, one, or unknown
};

// Who is in the groups of `rank`, which must outlive it, in a job of `world_size` ranks.
class RunnableGroups {
 public:
  RunnableGroups(const RunnableRank& rank, int64_t world_size);

  // Of the group of a node that communicates.
  GroupMembers MembersOf(const RunnableNode& node) const;
  // The numbers of its groups of some ranks in which collectives run.
  std::vector<uint32_t> UsedGroups() const;

 private:
  bool IsWorld(const std::vector<int64_t>& members) const;

  const RunnableRank* rank_;
  int64_t world_size_;
  std::vector<std::optional<GroupMembers>> listed_;  // by group; nullopt: the trace lists none
};

// Of groups whose ranks no trace lists, takes those that call them, as where jobs are simulated:
// where the group is stated to be of as many, or all ranks of the job are recorded
// (`all_recorded`). Of others it is noted whether all recorded ranks call them.
void TakeCallers(std::vector<RunnableRank>& ranks, bool all_recorded);

// The groups of some ranks in which collectives run, by number.
struct RunnableGroupIds {
  std::vector<std::vector<int64_t>> ids;           // by rank and its group; 0: not one of these
  std::map<int64_t, std::vector<int64_t>> groups;  // by id
  uint64_t renamed = 0;                            // have another id than the number in their name
};

// Gives each such group an id: the number in its name if it has one for itself, else the next free
// one. `groups` are those of `ranks`.
RunnableGroupIds NumberGroups(const std::vector<RunnableRank>& ranks,
                              const std::vector<RunnableGroups>& groups);

}  // namespace etude

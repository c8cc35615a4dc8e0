#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/transform/astra_sim/astra_rank.h"

namespace etude {

// Participants of a collective.
struct AstraMembers {
  int64_t size = 0;                             // 0: unknown
  const std::vector<int64_t>* ranks = nullptr;  // nullptr: all ranks, one, or unknown
};

// Members of the groups of `rank`, which must outlive it, in a job of `world_size` ranks.
class AstraGroups {
 public:
  AstraGroups(const AstraRank& rank, int64_t world_size);

  // Returns the members of the group of a node that communicates.
  AstraMembers MembersOf(const AstraNode& node) const;
  // Returns the indices of its groups of some ranks that run collectives.
  std::vector<uint32_t> UsedGroups() const;

 private:
  bool IsWorld(const std::vector<int64_t>& members) const;

  const AstraRank* rank_;
  int64_t world_size_;
  std::vector<std::optional<AstraMembers>> listed_;  // by group; nullopt: the trace does not list
                                                     // its ranks
};

// Sets the members of groups without listed ranks to the ranks that call them, as for simulated
// jobs, if that matches the group's stated size or if all ranks of the job are recorded
// (`all_recorded`). For other groups, notes whether all recorded ranks call them.
void TakeCallers(std::vector<AstraRank>& ranks, bool all_recorded);

// Groups of some ranks that run collectives, with ASTRA-sim's numbers.
struct AstraGroupIds {
  std::vector<std::vector<int64_t>> ids;           // by rank and its group; 0: not one of these
  std::map<int64_t, std::vector<int64_t>> groups;  // by id, including that of all ranks if needed
  int64_t world = 0;                               // id of the group of all ranks; 0: not needed
  uint64_t renamed = 0;                            // number of groups with another id than the
                                                   // number in their name
};

// Assigns an id to each such group: the number in its name if it is unique, else the next free one.
// `groups` are those of `ranks`.
AstraGroupIds NumberGroups(const std::vector<AstraRank>& ranks,
                           const std::vector<AstraGroups>& groups, int64_t world_size);

}  // namespace etude

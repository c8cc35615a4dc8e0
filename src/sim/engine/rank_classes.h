#pragma once

#include <cstdint>
#include <vector>

#include "src/base/container/id.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// Number of a class of ranks.
struct RankClassTag;
using RankClassId = Id<RankClassTag>;

// Ranks that do the same at the same times, whatever the sizes: they have one program, and each
// of their partners is a partner of the others' in the same class and as far away.
struct RankClasses {
  std::vector<uint32_t> class_of;  // by rank
  std::vector<int64_t> first;      // rank, by class
  // By group: groups that ranks of a class have under the same numbers have one number.
  std::map<int64_t, int64_t> kind_of_group;
  // By class and number of a partner: the first of the rank's numbers for it, and the partner's
  // first number for the rank; kNobody if it has none. Messages of several partners of a class are
  // told apart by these.
  struct Acquaintance {
    uint32_t here = SimNode::kNobody;
    uint32_t there = SimNode::kNobody;
  };
  std::vector<std::vector<Acquaintance>> partners;

  bool is_trivial() const { return first.size() == class_of.size(); }
};

RankClasses EachRank(const SimWorkload& workload);
// The coarsest classes; each rank is its own where ranks share what classes do not tell: links with
// queues, memory.
RankClasses FindRankClasses(const SimMachine& machine, const SimWorkload& workload);

}  // namespace etude

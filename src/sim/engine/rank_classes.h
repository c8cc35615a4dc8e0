#pragma once

#include <cstdint>
#include <vector>

#include "src/base/container/id.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// Number of a rank class.
struct RankClassTag;
using RankClassId = Id<RankClassTag>;

// Classes of ranks that do the same at the same times, regardless of sizes. The ranks of a class
// share one program, and corresponding partners belong to the same class at the same distance.
struct RankClasses {
  std::vector<uint32_t> class_of;  // by rank
  std::vector<int64_t> first;      // first rank, by class
  // Kind by group. Groups that ranks of a class have under the same numbers are of one kind.
  std::map<int64_t, int64_t> kind_of_group;
  // By class and partner number: the rank's first number for the partner, and the partner's first
  // number for the rank (kNobody if it has none). They distinguish messages from several partners
  // of one class.
  struct Acquaintance {
    uint32_t here = SimNode::kNobody;
    uint32_t there = SimNode::kNobody;
  };
  std::vector<std::vector<Acquaintance>> partners;
  // Class by link, of a network in which messages delay each other: all links of a class carry the
  // same messages. Empty: each link is its own class.
  std::vector<uint32_t> class_of_link;

  bool is_trivial() const { return first.size() == class_of.size(); }
};

// Returns classes of one rank each.
RankClasses EachRank(const SimWorkload& workload);
// Returns the coarsest classes. Each rank is its own class if ranks share state that classes cannot
// represent: memory, buses, paths that depend on the load, or links that carry several messages of
// one class one after the other.
RankClasses FindRankClasses(const SimMachine& machine, const SimWorkload& workload);

}  // namespace etude

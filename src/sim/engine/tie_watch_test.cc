#include "src/sim/engine/tie_watch.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

constexpr int64_t kRanks = 8;

SimNode Message(NodeKind kind, uint32_t peer, int64_t tag, bool on_host = false) {
  return {.kind = kind, .on_host = on_host, .peer = peer, .bytes = 8, .tag = tag};
}

// Eight ranks in a ring run this program; partner 0 is the next rank, 1 the previous. A message
// takes 500 ns.
SimResult AroundARing(const std::vector<SimNode>& nodes,
                      const std::vector<std::vector<uint32_t>>& befores, bool by_class = true) {
  const SimMachine machine =
      MachineOf({{.npus = kRanks, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
  SimWorkload workload;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    workload.ranks.push_back(
        RankOf(ProgramOf(nodes, befores), {}, {(rank + 1) % kRanks, (rank + kRanks - 1) % kRanks}));
  }
  return Simulate(machine, workload, {.by_class = by_class}).value();
}

// A rank's message arrives together with the previous rank's message; a node that depends on both
// begins then.
TEST(TieWatch, WhatWaitsForBoth) {
  const SimResult result = AroundARing({{.duration = 100},
                                        Message(NodeKind::kSend, 0, 1),
                                        Message(NodeKind::kRecv, 1, 1),
                                        {.duration = 50}},
                                       {{}, {0}, {}, {1, 2}});
  EXPECT_EQ(result.ranks.size(), 1u);
  EXPECT_EQ(result.ranks[0].begins, (std::vector<int64_t>{0, 100, 0, 600}));
  EXPECT_EQ(result.ranks[0].end, 650);
}

// Two simultaneous messages, one to each side; one of them is sent by the host.
std::vector<SimNode> ToBothSides(const SimNode& behind_first, const SimNode& behind_second) {
  return {Message(NodeKind::kSend, 0, 1),
          Message(NodeKind::kSend, 1, 2, true),
          Message(NodeKind::kRecv, 1, 1),
          Message(NodeKind::kRecv, 0, 2),
          behind_first,
          behind_second};
}

TEST(TieWatch, OtherPlaces) {
  const SimResult result =
      AroundARing(ToBothSides({.on_host = true, .duration = 100}, {.duration = 200}),
                  {{}, {}, {}, {}, {2}, {3}});
  EXPECT_EQ(result.ranks.size(), 1u);
  EXPECT_EQ(result.ranks[0].begins[4], 500);
  EXPECT_EQ(result.ranks[0].begins[5], 500);
}

// The first arrival begins first, and the lower rank's message arrives first: the ranks at both
// ends differ from the others.
TEST(TieWatch, OnePlace) {
  for (const bool by_class : {false, true}) {
    const SimResult result = AroundARing(ToBothSides({.duration = 100}, {.duration = 200}),
                                         {{}, {}, {}, {}, {2}, {3}}, by_class);
    EXPECT_EQ(result.ranks.size(), 8u);
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const bool at_end = rank == 0 || rank == kRanks - 1;
      EXPECT_EQ(result.OfRank(rank).begins[4], at_end ? 700 : 500) << rank;
      EXPECT_EQ(result.OfRank(rank).begins[5], at_end ? 500 : 600) << rank;
    }
  }
}

// The slot is busy while both arrive. Then the lower-numbered node begins, in any order of arrival.
TEST(TieWatch, OnePlaceThatIsTaken) {
  std::vector<SimNode> nodes = ToBothSides({.duration = 100}, {.duration = 200});
  nodes.push_back({.duration = 800});
  const SimResult result = AroundARing(nodes, {{}, {}, {}, {}, {2}, {3}, {}});
  EXPECT_EQ(result.ranks.size(), 1u);
  EXPECT_EQ(result.ranks[0].begins[4], 800);
  EXPECT_EQ(result.ranks[0].begins[5], 900);
}

}  // namespace
}  // namespace etude

// Collectives of different groups of a rank run at the same time on networks with shared links.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

SimMachine Connected(int64_t npus) {
  SimMachine machine;
  const std::string dims =
      NetworkOfDims("FullyConnected(" + std::to_string(npus) + "):100GB/s,0ns").value();
  EXPECT_TRUE(UseGraph(ParseNetworkGraph(dims, "net").value(), {}, "net", machine));
  machine.system.algorithms[CollectiveType::kAllReduce].resize(1);
  machine.system.endpoint_delay = 0;
  return machine;
}

// Four ranks, in pairs of neighbours (groups 1 and 2) and of every second rank (3 and 4). Each
// begins all-reduces of 1 MB in the groups of `numbers`, 1 or 2 of its own, all at once.
int64_t TimeOf(const SimMachine& machine, const std::vector<uint32_t>& numbers) {
  const RankGroups groups = {{1, {0, 1}}, {2, {2, 3}}, {3, {0, 2}}, {4, {1, 3}}};
  std::vector<SimRank> ranks;
  for (const int64_t rank : {0, 1, 2, 3}) {
    std::vector<SimNode> nodes;
    for (const uint32_t number : numbers) {
      nodes.push_back(CollectiveNode(CollectiveType::kAllReduce, 1'000'000, number));
    }
    ranks.push_back(RankOf(ProgramOf(nodes, std::vector<std::vector<uint32_t>>(nodes.size())),
                           {1 + rank / 2, 3 + rank % 2}));
  }
  const auto result = Simulate(machine, {.ranks = std::move(ranks), .groups = groups});
  EXPECT_TRUE(result) << result.error().message;
  int64_t end = 0;
  for (const SimRankResult& rank : result->ranks) end = std::max(end, rank.end);
  return end;
}

// A ring of two sends half of the bytes twice: 2 · 0.5 MB / 100 GB/s. The groups use other links.
TEST(GroupsAtOnce, CollectivesOfDifferentGroupsOverlap) {
  const SimMachine machine = Connected(4);
  EXPECT_EQ(TimeOf(machine, {1}), 10'000);
  EXPECT_EQ(TimeOf(machine, {1, 2}), 10'000);
  EXPECT_EQ(TimeOf(machine, {1, 1}), 20'000) << "one after the other";
}

// Their collectives are numbered together, and ranks begin them in another order.
TEST(GroupsAtOnce, GroupsOfAllRanksFollowEachOther) {
  const RankGroups groups = {{1, {0, 1, 2, 3}}, {2, {0, 1, 2, 3}}};
  std::vector<SimRank> ranks;
  for (const int64_t rank : {0, 1, 2, 3}) {
    const SimNode late{.kind = NodeKind::kCompute, .duration = rank == 2 ? 3'000 : 10};
    ranks.push_back(
        RankOf(ProgramOf({late, CollectiveNode(CollectiveType::kAllReduce, 1'000'000, 1),
                          CollectiveNode(CollectiveType::kAllReduce, 2'000'000, 2)},
                         {{}, {0}, {0}}),
               {1, 2}));
  }
  const auto result = Simulate(Connected(4), {.ranks = std::move(ranks), .groups = groups});
  ASSERT_TRUE(result) << result.error().message;
  // 2 · 3 steps of a quarter of the bytes.
  for (const SimRankResult& rank : result->ranks) EXPECT_EQ(rank.end, 3'000 + 15'000 + 30'000);
}

TEST(GroupsAtOnce, OnAstraSimsNetworksARankCommunicatesOnceAtATime) {
  SimMachine machine = testing_sim::MachineOf(
      {{.shape = NetworkShape::kFullyConnected, .npus = 4, .bandwidth = 100, .latency = 0}},
      CollectiveAlgorithm::kRing);
  const int64_t one = TimeOf(machine, {1});
  EXPECT_GT(TimeOf(machine, {1, 2}), one * 19 / 10);
}

}  // namespace
}  // namespace etude

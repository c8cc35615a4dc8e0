#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::ProgramOf;
using testing_sim::RankOf;

// Links of 1 byte/ns and 100 ns. Rank 0 sends 3,000 bytes to rank 1; rank 3 sends 1,000 bytes
// through 0 to 1.
SimResult ThroughOneLink(bool congestion) {
  SimMachine machine{.dims = {{.npus = 4, .bandwidth = 1e9 / 1073741824.0, .latency = 100}},
                     .congestion = congestion};
  const auto one = [](NodeKind kind, int64_t bytes, int64_t peer) {
    return RankOf(ProgramOf({{.kind = kind, .peer = 0, .bytes = bytes}}, {{}}), {}, {peer});
  };
  const SimNode from_first{.kind = NodeKind::kRecv, .peer = 0, .bytes = 3000};
  const SimNode from_last{.kind = NodeKind::kRecv, .peer = 1, .bytes = 1000};
  const SimWorkload workload{
      .ranks = {one(NodeKind::kSend, 3000, 1),
                RankOf(ProgramOf({from_first, from_last}, {{}, {}}), {}, {0, 3}),
                RankOf(ProgramOf({{.duration = 5}}, {{}})), one(NodeKind::kSend, 1000, 1)}};
  return Simulate(machine, workload, {.by_class = false}).value();
}

// The second message reaches device 0 at 1,100 ns and waits there until 3,000 ns.
TEST(LinkUse, OfLinksWithQueues) {
  const SimResult result = ThroughOneLink(true);
  EXPECT_EQ(result.OfRank(1).end, 3000 + 1100);
  ASSERT_EQ(result.links.size(), 2u);
  const SimLinkUse& shared = result.links[0];
  EXPECT_EQ(shared.from, 0);
  EXPECT_EQ(shared.to, std::optional<int64_t>(1));
  EXPECT_EQ(shared.messages, 2u);
  EXPECT_EQ(shared.bytes, 4000);
  EXPECT_EQ(shared.busy, 4000);
  EXPECT_EQ(shared.waited, 1900);
  const SimLinkUse& other = result.links[1];
  EXPECT_EQ(other.from, 3);
  EXPECT_EQ(other.to, std::optional<int64_t>(0));
  EXPECT_EQ(other.bytes, 1000);
  EXPECT_EQ(other.waited, 0);
}

// All ranks do the same, so one of them and its links represent all.
TEST(LinkUse, OfOneClass) {
  const auto simulate = [](NetworkShape shape, CollectiveType type, CollectiveAlgorithm algorithm,
                           bool by_class) {
    SimMachine machine = testing_sim::MachineOf(
        {{.shape = shape, .npus = 12, .bandwidth = 50, .latency = 500}}, algorithm);
    machine.congestion = true;
    machine.system.active_chunks = 2;
    SimWorkload workload;
    for (int64_t rank = 0; rank < 12; ++rank) {
      workload.ranks.push_back(
          RankOf(ProgramOf({testing_sim::CollectiveNode(type, 1 << 20)}, {{}})));
    }
    return Simulate(machine, workload, {.by_class = by_class}).value();
  };
  for (const NetworkShape shape :
       {NetworkShape::kRing, NetworkShape::kFullyConnected, NetworkShape::kSwitch}) {
    for (const auto& [type, algorithm] :
         {std::pair(CollectiveType::kAllReduce, CollectiveAlgorithm::kRing),
          std::pair(CollectiveType::kAllToAll, CollectiveAlgorithm::kRing),
          std::pair(CollectiveType::kAllToAll, CollectiveAlgorithm::kDirect)}) {
      const SimResult one = simulate(shape, type, algorithm, true);
      const SimResult each = simulate(shape, type, algorithm, false);
      EXPECT_EQ(one.ranks.size(), 1u);
      EXPECT_LE(one.events * 12, each.events);
      ASSERT_EQ(each.ranks.size(), 12u);
      for (const SimRankResult& rank : each.ranks) EXPECT_EQ(rank.end, one.ranks[0].end);
      ASSERT_EQ(one.links.size(), each.links.size());
      for (size_t i = 0; i < each.links.size(); ++i) {
        EXPECT_EQ(one.links[i].from, each.links[i].from);
        EXPECT_EQ(one.links[i].to, each.links[i].to);
        EXPECT_EQ(one.links[i].messages, each.links[i].messages);
        EXPECT_EQ(one.links[i].waited, each.links[i].waited);
      }
    }
  }
}

// Without queues, a message counts where it is sent.
TEST(LinkUse, OfRanksAlongADimension) {
  const SimResult result = ThroughOneLink(false);
  EXPECT_EQ(result.OfRank(1).end, 3100);
  ASSERT_EQ(result.links.size(), 2u);
  EXPECT_EQ(result.links[0].from, result.class_of[0]);
  EXPECT_EQ(result.links[0].to, std::nullopt);
  EXPECT_EQ(result.links[0].bytes, 3000);
  EXPECT_EQ(result.links[1].from, result.class_of[3]);
  EXPECT_EQ(result.links[1].messages, 1u);
  EXPECT_EQ(result.links[1].bytes, 1000);
}

}  // namespace
}  // namespace etude

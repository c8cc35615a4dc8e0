#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
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

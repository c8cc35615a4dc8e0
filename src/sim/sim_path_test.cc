#include "src/sim/sim_path.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "src/sim/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

SimMachine Ring(int64_t npus) {
  return MachineOf({{.npus = npus, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
}

std::string TextOf(const SimPath& path) {
  std::string text;
  for (const SimPath::Stretch& one : path.stretches) {
    text += std::string(Name(one.part)) + " " + std::to_string(one.rank) + ":" +
            (one.node == SimPath::Stretch::kNoNode ? "-" : std::to_string(one.node)) + " " +
            std::to_string(one.begin) + "-" + std::to_string(one.end) + " " +
            std::string(Name(one.cause)) + " " + std::to_string(one.held) + " " +
            std::to_string(one.awaited) + "\n";
  }
  return text;
}

int64_t PartOf(const SimPath& path, SimPart part) { return path.parts[static_cast<size_t>(part)]; }

// The device computes one after the other: the second had been ready since 0.
TEST(SimPath, ASlotThatIsTaken) {
  const SimWorkload workload{
      .ranks = {RankOf(
          ProgramOf({{.duration = 100}, {.duration = 200}, {.duration = 7}}, {{}, {}, {1}}))}};
  SimMachine machine = Ring(1);
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  EXPECT_EQ(TextOf(path),
            "compute 0:0 0-100 start 0 0\n"
            "compute 0:1 100-300 slot 100 0\n"
            "compute 0:2 300-307 dependency 0 0\n");
  EXPECT_EQ(path.length, 307);
  EXPECT_EQ(PartOf(path, SimPart::kCompute), 307);
}

// Rank 1 comes 200 ns after rank 0, which has work behind the all-reduce.
TEST(SimPath, HopsToTheRankThatCameLast) {
  const SimNode reduce = CollectiveNode(CollectiveType::kAllReduce, 1 << 20);
  const SimWorkload workload{
      .ranks = {RankOf(ProgramOf({{.duration = 100}, reduce, {.duration = 500}}, {{}, {0}, {1}})),
                RankOf(ProgramOf({{.duration = 300}, reduce}, {{}, {0}}))}};
  const SimMachine machine = Ring(2);
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  const int64_t end = result.OfRank(0).ends[1];
  EXPECT_EQ(TextOf(path), "compute 1:0 0-300 start 0 0\ncollective 1:1 300-" + std::to_string(end) +
                              " dependency 0 200\ncompute 0:2 " + std::to_string(end) + "-" +
                              std::to_string(end + 500) + " dependency 0 0\n");
  EXPECT_EQ(path.hops, 1u);
  EXPECT_EQ(PartOf(path, SimPart::kCollective), end - 300);
}

// An all-reduce along the first dimension is one of ranks 0 and 1 and one of ranks 2 and 3: the
// latter come last, but not to that of the former.
TEST(SimPath, CollectivesOfSomeDimensions) {
  const SimMachine machine = MachineOf(
      {{.npus = 2, .bandwidth = 50, .latency = 500}, {.npus = 2, .bandwidth = 50, .latency = 500}},
      CollectiveAlgorithm::kRing);
  SimNode reduce = CollectiveNode(CollectiveType::kAllReduce, 1 << 20);
  reduce.dims = 1;
  const auto rank = [&](int64_t before, int64_t behind) {
    return RankOf(ProgramOf({{.duration = before}, reduce, {.duration = behind}}, {{}, {0}, {1}}));
  };
  const SimWorkload workload{
      .ranks = {rank(100, 900'000), rank(200, 1), rank(300, 1), rank(400, 1)}};
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  ASSERT_EQ(path.stretches.size(), 3u);
  EXPECT_EQ(path.stretches[1].rank, 1);
  EXPECT_EQ(path.stretches[1].begin, 200);
  EXPECT_EQ(path.stretches[1].awaited, 100);
}

// 1 MiB at 50 GiB/s: 19,531 ns, and 500 ns of the link.
SimWorkload Message(int64_t before_receive) {
  return {.ranks = {RankOf(ProgramOf({{.duration = 10},
                                      {.kind = NodeKind::kSend, .peer = 0, .bytes = 1 << 20}},
                                     {{}, {0}}),
                           {}, {1}),
                    RankOf(ProgramOf({{.duration = before_receive},
                                      {.kind = NodeKind::kRecv, .peer = 0, .bytes = 1 << 20},
                                      {.duration = 5}},
                                     {{}, {0}, {1}}),
                           {}, {0})}};
}
TEST(SimPath, MessagesAreLatencyAndTransfer) {
  const SimMachine machine = Ring(2);
  const SimWorkload workload = Message(30);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 0:0 0-10 start 0 0\n"
            "latency 0:1 10-510 dependency 0 0\n"
            "transfer 0:1 510-20041 dependency 0 0\n"
            "compute 1:2 20041-20046 dependency 0 0\n");
}
TEST(SimPath, AReceiverThatComesLateNeedsNoTransfer) {
  const SimMachine machine = Ring(2);
  const SimWorkload workload = Message(50'000);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 1:0 0-50000 start 0 0\n"
            "compute 1:2 50000-50005 dependency 0 0\n");
}

// Two messages over one link: the second waits for the bytes of the first.
TEST(SimPath, ALinkThatIsTaken) {
  SimMachine machine = MachineOf(
      {{.shape = NetworkShape::kFullyConnected, .npus = 2, .bandwidth = 50, .latency = 500}},
      CollectiveAlgorithm::kRing);
  machine.congestion = true;
  SimNode from_host{.kind = NodeKind::kSend, .on_host = true, .peer = 0, .bytes = 1 << 20};
  SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 1 << 20};
  SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 1 << 20};
  const SimWorkload workload{.ranks = {RankOf(ProgramOf({from_host, send}, {{}, {}}), {}, {1}),
                                       RankOf(ProgramOf({receive, receive}, {{}, {}}), {}, {0})}};
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  EXPECT_EQ(path.length, 19'531 + 20'031);
  EXPECT_EQ(PartOf(path, SimPart::kQueue), 19'531);
  EXPECT_EQ(PartOf(path, SimPart::kLatency), 500);
  EXPECT_EQ(PartOf(path, SimPart::kTransfer), 19'531);
}

// Nodes without work free others at the rank's next completion.
TEST(SimPath, BehindNodesWithoutWork) {
  const SimWorkload workload{
      .ranks = {RankOf(ProgramOf(
          {{.kind = NodeKind::kMetadata}, {.duration = 40}, {.on_host = true, .duration = 9}},
          {{}, {}, {0}}))}};
  const SimMachine machine = Ring(1);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 0:1 0-40 start 0 0\n"
            "host 0:2 40-49 freed 40 0\n");
}

// The stretches of random jobs follow one another, each within its node, and say all of the time.
TEST(SimPath, AddsUpToTheWhole) {
  std::mt19937 random(7);
  uint64_t hops = 0;
  for (int round = 0; round < 60; ++round) {
    SimMachine machine = Ring(4);
    machine.congestion = round % 3 == 0;
    machine.system.rendezvous = round % 5 == 0;
    SimWorkload workload;
    const size_t count = 3 + random() % 8;
    std::vector<int> kinds;
    for (size_t i = 0; i < count; ++i) kinds.push_back(static_cast<int>(random() % 4));
    for (int64_t rank = 0; rank < 4; ++rank) {
      std::vector<SimNode> nodes;
      std::vector<std::vector<uint32_t>> befores;
      for (uint32_t i = 0; i < count; ++i) {
        SimNode node{.on_host = random() % 4 == 0,
                     .duration = 1 + static_cast<int>(random() % 999)};
        if (kinds[i] == 1) node = CollectiveNode(CollectiveType::kAllReduce, 4096);
        if (kinds[i] == 2) {
          node = {
              .kind = rank % 2 == 0 ? NodeKind::kSend : NodeKind::kRecv, .peer = 0, .bytes = 8192};
        }
        nodes.push_back(node);
        befores.emplace_back();
        for (uint32_t j = 0; j < i; ++j) {
          const bool both = kinds[i] > 0 && kinds[j] > 0 && kinds[i] < 3 && kinds[j] < 3;
          if (both || random() % 3 == 0) befores.back().push_back(j);
        }
      }
      workload.ranks.push_back(RankOf(ProgramOf(std::move(nodes), befores), {}, {rank ^ 1}));
    }
    const SimResult result = Simulate(machine, workload).value();
    const SimPath path = FindSimPath(machine, workload, result);
    int64_t last_end = 0;
    int64_t latest = 0;
    for (const SimRankResult& rank : result.ranks) {
      ASSERT_TRUE(rank.finished);
      latest = std::max(latest, rank.wall);
    }
    ASSERT_EQ(path.length, latest);
    int64_t sum = 0;
    for (const int64_t part : path.parts) sum += part;
    ASSERT_EQ(sum, latest);
    for (const SimPath::Stretch& one : path.stretches) {
      ASSERT_EQ(one.begin, last_end) << round;
      ASSERT_LT(one.begin, one.end) << round;
      last_end = one.end;
      ASSERT_NE(one.part, SimPart::kWait) << round;
      ASSERT_GE(one.begin, result.OfRank(one.rank).begins[one.node]) << round;
      ASSERT_LE(one.end, result.OfRank(one.rank).ends[one.node]) << round;
    }
    ASSERT_EQ(last_end, latest);
    hops += path.hops;
  }
  EXPECT_GT(hops, 15u);
}

}  // namespace
}  // namespace etude

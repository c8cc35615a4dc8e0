#include "src/sim/models/flow_network.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/algorithm_rules.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"
#include "src/sim/testing/random_simulation_testing.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

constexpr int64_t kNanosOfEndpoint = 10;

SimMachine FlowMachineOf(const std::string& network, const std::vector<std::string>& slow = {}) {
  SimMachine machine;
  const std::string text = IsNetworkOfDims(network) ? *NetworkOfDims(network) : network;
  auto graph = ParseNetworkGraph(text, "network");
  EXPECT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(UseGraph(*std::move(graph), slow, "network", machine));
  for (const CollectiveType type : {CollectiveType::kAllReduce, CollectiveType::kAllGather,
                                    CollectiveType::kReduceScatter, CollectiveType::kAllToAll}) {
    machine.system.algorithms[type].resize(machine.dims.size());
  }
  return machine;
}

int64_t FlowTimeOf(const SimMachine& machine, const SimWorkload& workload) {
  const auto result = Simulate(machine, workload);
  EXPECT_TRUE(result) << result.error().message;
  int64_t time = 0;
  for (const SimRankResult& rank : result->ranks) {
    EXPECT_TRUE(rank.finished);
    time = std::max(time, rank.end);
  }
  return time;
}

int64_t FlowTimeOfAll(const SimMachine& machine, const SimNode& node) {
  SimWorkload workload;
  for (int64_t i = 0; i < machine.npus(); ++i) {
    workload.ranks.push_back(RankOf(ProgramOf({node}, {{}})));
  }
  return FlowTimeOf(machine, workload);
}

SimNode FlowMessageNode(NodeKind kind, int64_t bytes, int64_t tag) {
  return {.kind = kind, .peer = 0, .bytes = bytes, .tag = tag};
}

TEST(FlowNetwork, FlowsShareALinkFairly) {
  // NPUs 0 and 1 send 2,000 bytes each over a link of 100 bytes per ns; the message of 0 goes on
  // over a link of 20. It takes 100 ns, and the other one 25 instead of 40. Each path has 3 ns of
  // latency.
  SimMachine machine = FlowMachineOf(
      "0 a 1000GB/s 1ns\n1 a 1000GB/s 1ns\na b 100GB/s 1ns\nb 2 20GB/s 1ns\nb 3 1000GB/s 1ns\n");
  SimWorkload workload;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const bool sends = rank < 2;
    workload.ranks.push_back(RankOf(
        ProgramOf({FlowMessageNode(sends ? NodeKind::kSend : NodeKind::kRecv, 2000, rank % 2)},
                  {{}}),
        {}, {(rank + 2) % 4}));
  }
  const auto result = Simulate(machine, workload);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->OfRank(2).ends[0], 103);
  EXPECT_EQ(result->OfRank(3).ends[0], 28);
  ASSERT_EQ(result->links.size(), 5U);
  EXPECT_EQ(result->links[2].bytes, 4000);
  EXPECT_EQ(result->links[2].busy, 40);
}

TEST(FlowNetwork, EndsAreDueDespiteRoundingErrors) {
  // All messages begin after 7 s, and share a link. The shortest of those that are left ends next:
  // all ends are whole, but sums of times above 2^32 ns have rounding errors.
  constexpr int64_t kMessages = 40;
  constexpr int64_t kTime = 10'000'019;  // ns that a message of the shortest size takes alone
  for (const int64_t rate : {3, 7, 11, 13, 17, 19, 23, 29}) {  // bytes per ns
    std::string links = fmt::format("a b {}GB/s 7000ms\n", rate);
    SimWorkload workload;
    for (int64_t rank = 0; rank < 2 * kMessages; ++rank) {
      const bool sends = rank < kMessages;
      const int64_t number = rank % kMessages + 1;
      links += sends ? fmt::format("{} a 1000GB/s 0ns\n", rank)
                     : fmt::format("b {} 1000GB/s 0ns\n", rank);
      workload.ranks.push_back(
          RankOf(ProgramOf({FlowMessageNode(sends ? NodeKind::kSend : NodeKind::kRecv,
                                            rate * kTime * number, number)},
                           {{}}),
                 {}, {(rank + kMessages) % (2 * kMessages)}));
    }
    const auto result = Simulate(FlowMachineOf(links), workload);
    ASSERT_TRUE(result) << result.error().message;
    int64_t end = 7'000'000'000;
    for (int64_t i = 0; i < kMessages; ++i) {
      end += kTime * (kMessages - i);
      EXPECT_EQ(result->OfRank(kMessages + i).ends[0], end) << rate << " " << i;
    }
  }
}

TEST(FlowNetwork, RingsEqualTheirClosedForm) {
  constexpr int64_t kBytes = 1 << 20;
  for (const int64_t npus : {2, 4, 8, 16}) {
    const SimMachine machine = FlowMachineOf("Ring(" + std::to_string(npus) + "):50GB/s,500ns");
    const auto message = static_cast<int64_t>(std::ceil(kBytes / static_cast<double>(npus) / 50));
    const int64_t steps = 2 * (npus - 1);
    // ASTRA-sim's endpoints add their delay before each message, between, and after the last one.
    EXPECT_EQ(FlowTimeOfAll(machine, CollectiveNode(CollectiveType::kAllReduce, kBytes)),
              steps * (500 + message) + (2 * npus - 1) * kNanosOfEndpoint);
  }
}

TEST(FlowNetwork, ExchangesEqualTheirClosedForms) {
  constexpr int64_t kBytes = 1 << 20;
  constexpr int64_t kNpus = 8;
  constexpr double kMessage = kBytes / static_cast<double>(kNpus);
  const auto direct = [&](const std::string& network) {
    SimMachine machine = FlowMachineOf(network);
    machine.system.algorithms[CollectiveType::kAllToAll] = {
        {.algorithm = CollectiveAlgorithm::kDirect}};
    machine.system.endpoint_delay = 0;
    return FlowTimeOfAll(machine, CollectiveNode(CollectiveType::kAllToAll, kBytes));
  };
  const auto ceil = [](double time) { return static_cast<int64_t>(std::ceil(time)); };
  // Through a switch, a link carries 7 messages of an NPU; a direct link carries one. On a ring of
  // 8 a link carries 1 + 2 + 3 messages, and half of those between opposite NPUs, 2: 8 in all.
  EXPECT_EQ(direct("Switch(8):50GB/s,250ns"), 500 + ceil(7 * kMessage / 50));
  EXPECT_EQ(direct("FullyConnected(8):50GB/s,500ns"), 500 + ceil(kMessage / 50));
  EXPECT_GE(direct("Ring(8):50GB/s,0ns"), ceil(8 * kMessage / 50));
}

TEST(FlowNetwork, SlowLinksSlowTheirMessages) {
  constexpr int64_t kBytes = 1 << 20;
  const SimNode node = CollectiveNode(CollectiveType::kAllGather, kBytes);
  const int64_t whole = FlowTimeOfAll(FlowMachineOf("Ring(2):50GB/s,500ns"), node);
  const int64_t half = FlowTimeOfAll(FlowMachineOf("Ring(2):50GB/s,500ns", {"0-1:0.5+1us"}), node);
  EXPECT_EQ(half - whole, 1000 + static_cast<int64_t>(std::ceil(kBytes / 25.0)) -
                              static_cast<int64_t>(std::ceil(kBytes / 50.0)));
}

TEST(FlowNetwork, EmptyMessagesTakeTheLatency) {
  SimMachine machine = FlowMachineOf("Switch(2):50GB/s,250ns");
  const int64_t time = FlowTimeOfAll(machine, CollectiveNode(CollectiveType::kBarrier, 0));
  EXPECT_EQ(time, 500 + 2 * kNanosOfEndpoint);
}

// Ranks that do the same are simulated once, with the same times and links.
void ExpectSameByClass(const SimMachine& machine, const SimWorkload& workload, int& by_class) {
  const auto each = Simulate(machine, workload, {.by_class = false});
  const auto classes = Simulate(machine, workload);
  ASSERT_EQ(classes.has_value(), each.has_value());
  if (!each) return;
  by_class += classes->ranks.size() < each->ranks.size() ? 1 : 0;
  for (int64_t rank = 0; rank < machine.npus(); ++rank) {
    ASSERT_EQ(classes->OfRank(rank).finished, each->OfRank(rank).finished) << "rank " << rank;
    ASSERT_EQ(classes->OfRank(rank).begins, each->OfRank(rank).begins) << "rank " << rank;
    ASSERT_EQ(classes->OfRank(rank).ends, each->OfRank(rank).ends) << "rank " << rank;
  }
  ASSERT_EQ(classes->links.size(), each->links.size());
  for (size_t i = 0; i < each->links.size(); ++i) {
    ASSERT_EQ(classes->links[i].from, each->links[i].from) << "link " << i;
    ASSERT_EQ(classes->links[i].to, each->links[i].to) << "link " << i;
    ASSERT_EQ(classes->links[i].messages, each->links[i].messages) << "link " << i;
    ASSERT_EQ(classes->links[i].bytes, each->links[i].bytes) << "link " << i;
  }
}

// Even and odd ranks of two nodes of four form a group each. Along the dimensions, a member sends
// half of its data in its node, two quarters to the other node, and the half back.
TEST(FlowNetwork, GroupsTakeOneDimensionAfterTheOther) {
  constexpr int64_t kBytes = 1 << 20;
  SimMachine machine = FlowMachineOf("Switch(4):50GB/s,250ns Switch(2):25GB/s,500ns");
  machine.system.endpoint_delay = 0;
  machine.system.bandwidth_aware = true;
  SimWorkload workload;
  for (int64_t rank = 0; rank < 8; ++rank) {
    workload.groups[1 + rank % 2].push_back(rank);
    workload.ranks.push_back({.program = std::make_shared<const SimProgram>(ProgramOf(
                                  {CollectiveNode(CollectiveType::kAllReduce, kBytes, 1)}, {{}})),
                              .groups = {1 + rank % 2},
                              .peers = {}});
  }
  const auto half = static_cast<int64_t>(std::ceil(kBytes / 2 / 50.0));
  const auto quarter = static_cast<int64_t>(std::ceil(kBytes / 4 / 25.0));
  EXPECT_EQ(FlowTimeOf(machine, workload), 2 * (500 + half) + 2 * (1000 + quarter));
  // Events at one time would need each rank.
  SimMachine with_delay = machine;
  with_delay.system.endpoint_delay = kNanosOfEndpoint;
  int by_class = 0;
  ExpectSameByClass(with_delay, workload, by_class);
  EXPECT_EQ(by_class, 1);
  // Another algorithm in each dimension.
  machine.system.algorithms[CollectiveType::kAllReduce][1].algorithm =
      CollectiveAlgorithm::kHalvingDoubling;
  EXPECT_EQ(FlowTimeOf(machine, workload), 2 * (500 + half) + 2 * (1000 + quarter));
  // Three of four members are no grid, and need one algorithm.
  for (auto& [number, members] : workload.groups) {
    workload.ranks[static_cast<size_t>(members.back())] = RankOf(ProgramOf({}, {}));
    members.pop_back();
  }
  EXPECT_FALSE(Simulate(machine, workload));
}

TEST(FlowNetwork, MessagesOfAPairKeepTheirOrder) {
  // A ring of 4 with one slow link, 0 to 1: its six messages follow each other without a gap, while
  // the others wait for them.
  constexpr int64_t kBytes = 4 << 20;
  SimMachine machine = FlowMachineOf(
      "0 -> 1 1GB/s 100ns\n1 -> 2 100GB/s 100ns\n2 -> 3 100GB/s 100ns\n3 -> 0 100GB/s 100ns\n");
  machine.system.endpoint_delay = 0;
  const int64_t time = FlowTimeOfAll(machine, CollectiveNode(CollectiveType::kAllReduce, kBytes));
  // If the first four shared the link, the fifth could only begin after all of them.
  EXPECT_EQ(time, 100 + 6 * (kBytes / 4));
}

// Rules of algorithms: a reduce-scatter as an all-reduce, one tree over all dimensions, and a ring
// where none fits.
TEST(FlowNetwork, RulesChooseAlgorithms) {
  constexpr int64_t kBytes = 1 << 20;
  const SimMachine plain = FlowMachineOf("Switch(4):50GB/s,250ns Switch(2):25GB/s,500ns");
  SimMachine gloo = plain;
  ASSERT_TRUE(UseAlgorithmRules("", "gloo", gloo));
  const auto time = [](const SimMachine& machine, CollectiveType type) {
    return FlowTimeOfAll(machine, CollectiveNode(type, kBytes));
  };
  EXPECT_EQ(time(gloo, CollectiveType::kReduceScatter), time(gloo, CollectiveType::kAllReduce));
  EXPECT_GT(time(gloo, CollectiveType::kReduceScatter),
            time(plain, CollectiveType::kReduceScatter));
  // Eight ranks are a tree of three levels: from 0 to 4 in the second dimension, then in the first.
  const auto message = [](double rate) { return static_cast<int64_t>(std::ceil(kBytes / rate)); };
  EXPECT_EQ(time(gloo, CollectiveType::kBroadcast),
            1000 + message(25) + 500 + message(25) + 500 + message(50) + 4 * kNanosOfEndpoint);
  SimMachine other = FlowMachineOf("Switch(4):50GB/s,250ns Switch(2):25GB/s,500ns");
  other.system.algorithms.clear();
  ASSERT_TRUE(UseAlgorithmRules(
      "[[rule]]\ncollective = 'all_gather'\nbytes = [0, 8]\nalgorithm = 'bruck'\n", "r.toml",
      other));
  EXPECT_EQ(time(other, CollectiveType::kAllGather), time(plain, CollectiveType::kAllGather));
  // Lists whose algorithms cannot be beside each other.
  using enum CollectiveAlgorithm;
  for (const AlgorithmChoice& odd : {AlgorithmChoice{.algorithm = kSlicedAllReduce},
                                     AlgorithmChoice{.algorithm = kRing, .whole = true}}) {
    SimMachine mixed = plain;
    mixed.system.algorithms[CollectiveType::kReduceScatter] = {{.algorithm = kRing}, odd};
    EXPECT_FALSE(CheckAlgorithms(mixed));
  }
}

// Rooted collectives of groups that form grids, with each root.
TEST(FlowNetwork, RootedCollectivesOfGrids) {
  using enum CollectiveType;
  int by_class = 0;
  for (const CollectiveType type : {kBroadcast, kReduce, kGather, kScatter, kBarrier}) {
    for (int64_t root = 0; root < 4; ++root) {
      SimMachine machine = FlowMachineOf("Switch(4):50GB/s,250ns Switch(2):25GB/s,500ns");
      SimWorkload workload;
      SimNode node = CollectiveNode(type, 1 << 16, 1);
      node.root = root;
      for (int64_t rank = 0; rank < 8; ++rank) {
        workload.groups[1 + rank % 2].push_back(rank);
        workload.ranks.push_back(
            {.program = std::make_shared<const SimProgram>(ProgramOf({node}, {{}})),
             .groups = {1 + rank % 2},
             .peers = {}});
      }
      ExpectSameByClass(machine, workload, by_class);
      EXPECT_GT(FlowTimeOf(machine, workload), 0);
    }
  }
  EXPECT_GT(by_class, 0);
}

TEST(FlowNetwork, ClassesEqualEachRank) {
  const char* const shapes[] = {"Ring", "FullyConnected", "Switch", "Mesh"};
  int by_class = 0;
  constexpr uint32_t kCases = 500;
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    RandomSimulation random(seed);
    SimMachine machine = random.machine;
    std::string network;
    for (size_t i = 0; i < machine.dims.size(); ++i) {
      const NetworkDim& dim = machine.dims[i];
      network += fmt::format("{}{}({}):{}GB/s,{}ns", i == 0 ? "" : " ", shapes[(seed + i) % 4],
                             dim.npus, dim.bandwidth, dim.latency);
    }
    machine.congestion = false;
    machine.slow_links.clear();
    // Algorithms that only graphs have.
    for (auto& [type, choices] : machine.system.algorithms) {
      for (size_t i = 0; i < choices.size(); ++i) {
        using enum CollectiveAlgorithm;
        const CollectiveAlgorithm other = std::array{kBidirectionalRing, kBruck, kPat}[seed % 3];
        if ((seed + i) % 2 == 0 && Info(other).IsFor(type)) choices[i] = {.algorithm = other};
      }
    }
    if (seed % 5 == 0) ASSERT_TRUE(UseAlgorithmRules("", "gloo", machine));
    auto graph = ParseNetworkGraph(*NetworkOfDims(network), "network");
    ASSERT_TRUE(graph) << graph.error().message;
    ASSERT_TRUE(UseGraph(*std::move(graph), {}, "network", machine));
    ExpectSameByClass(machine, random.workload, by_class);
    if (testing::Test::HasFatalFailure()) {
      FAIL() << "seed " << seed << ", " << network << "\n" << random.Describe();
    }
  }
  EXPECT_GT(by_class, static_cast<int>(kCases) / 20);
}

TEST(FlowNetwork, LinksOfAClassShareTheirFlows) {
  // Four leaves of four NPUs: the rings go over trunks of half the bandwidth, two ways at once.
  std::string links;
  for (int npu = 0; npu < 16; ++npu) links += fmt::format("{} leaf{} 50GB/s 100ns\n", npu, npu / 4);
  for (int leaf = 0; leaf < 4; ++leaf) links += fmt::format("leaf{} spine 100GB/s 100ns\n", leaf);
  const SimMachine machine = FlowMachineOf(links);
  SimWorkload workload;
  const auto program = std::make_shared<const SimProgram>(
      ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 1 << 20, 1)}, {{}}));
  for (int64_t rank = 0; rank < 16; ++rank) {
    workload.groups[1 + rank % 4].push_back(rank);
    workload.ranks.push_back({.program = program, .groups = {1 + rank % 4}, .peers = {}});
  }
  int by_class = 0;
  ExpectSameByClass(machine, workload, by_class);
  const auto result = Simulate(machine, workload);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ranks.size(), 1U);
  // Four flows share a trunk.
  const auto message = static_cast<int64_t>(std::ceil((1 << 18) / 25.0));
  EXPECT_EQ(result->ranks[0].end, 6 * (400 + message) + 7 * kNanosOfEndpoint);
}

TEST(FlowNetwork, LeastLoadedRoutesShareCores) {
  SimMachine machine = FlowMachineOf("FatTree(4):50GB/s,500ns");
  machine.system.algorithms[CollectiveType::kAllToAll] = {
      {.algorithm = CollectiveAlgorithm::kDirect}};
  const SimNode node = CollectiveNode(CollectiveType::kAllToAll, 16 << 20);
  const int64_t hashed = FlowTimeOfAll(machine, node);
  machine.routes = RouteChoice::kLeastLoaded;
  EXPECT_LT(FlowTimeOfAll(machine, node), hashed);
}

}  // namespace
}  // namespace etude

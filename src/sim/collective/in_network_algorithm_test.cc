#include "src/sim/collective/in_network_algorithm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"
#include "src/sim/network/network_graph.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

constexpr CollectiveType kReducedTypes[] = {
    CollectiveType::kAllReduce, CollectiveType::kAllGather, CollectiveType::kReduceScatter,
    CollectiveType::kBroadcast, CollectiveType::kReduce,    CollectiveType::kBarrier};

SimMachine SwitchMachineOf(const std::string& network, CollectiveAlgorithm algorithm) {
  SimMachine machine;
  const std::string text = IsNetworkOfDims(network) ? *NetworkOfDims(network) : network;
  auto graph = ParseNetworkGraph(text, "network");
  EXPECT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(UseGraph(*std::move(graph), {}, "network", machine));
  for (const CollectiveType type : kReducedTypes) {
    if (OwnAlgorithm(type) && !Info(algorithm).in_network) continue;
    machine.system.algorithms[type].assign(machine.dims.size(), {.algorithm = algorithm});
  }
  return machine;
}

// All ranks do the same.
Result<SimResult> RunSame(const SimMachine& machine, const SimNode& node) {
  SimWorkload workload;
  for (int64_t i = 0; i < machine.npus(); ++i) {
    workload.ranks.push_back(RankOf(ProgramOf({node}, {{}})));
  }
  return Simulate(machine, workload);
}

// Returns the bytes on each used link: "0>switch" to bytes.
std::map<std::string, int64_t> LinkBytes(const SimMachine& machine, const SimResult& result) {
  std::map<std::string, int64_t> bytes;
  for (const SimLinkUse& link : result.links) {
    const auto name = [&](int64_t node) {
      return machine.graph->NameOf(static_cast<uint32_t>(node));
    };
    bytes[name(link.from) + ">" + name(*link.to)] += link.bytes;
  }
  return bytes;
}

TEST(InNetwork, TimesAreLatencyTwiceAndTheBytesOnce) {
  // 8 NPUs at a switch, 50 bytes per ns and 250 ns a link; 10 ns before and after.
  const SimMachine machine =
      SwitchMachineOf("Switch(8):50GB/s,250ns", CollectiveAlgorithm::kInNetwork);
  const std::pair<CollectiveType, int64_t> ends[] = {
      {CollectiveType::kAllReduce, 520 + 1600},     {CollectiveType::kReduceScatter, 520 + 1600},
      {CollectiveType::kAllGather, 520 + 8 * 1600}, {CollectiveType::kBroadcast, 520 + 1600},
      {CollectiveType::kReduce, 520 + 1600},        {CollectiveType::kBarrier, 520}};
  for (const auto& [type, end] : ends) {
    const auto result = RunSame(machine, CollectiveNode(type, 80'000));
    ASSERT_TRUE(result) << result.error().message;
    for (int64_t rank = 0; rank < 8; ++rank) {
      EXPECT_EQ(result->OfRank(rank).ends[0], end) << Name(type) << rank;
      const SimCollectiveEnd& parts = result->OfRank(rank).collectives[0];
      EXPECT_EQ(parts.latency, 500);
      EXPECT_EQ(parts.transfer, end - 520);
      EXPECT_EQ(parts.handling, 20);
      EXPECT_EQ(parts.queue, 0);
    }
  }
}

TEST(InNetwork, LinksCarryDataUpAndResultsDown) {
  const SimMachine machine =
      SwitchMachineOf("Switch(4):50GB/s,250ns", CollectiveAlgorithm::kInNetwork);
  const auto bytes = [&](CollectiveType type, int64_t root = 0) {
    SimNode node = CollectiveNode(type, 4000);
    node.root = root;
    const auto result = RunSame(machine, node);
    std::map<std::string, int64_t> of_link = LinkBytes(machine, *result);
    std::vector<int64_t> both;
    for (int64_t rank = 0; rank < 4; ++rank)
      both.push_back(of_link[fmt::format("{}>switch", rank)]);
    for (int64_t rank = 0; rank < 4; ++rank)
      both.push_back(of_link[fmt::format("switch>{}", rank)]);
    return both;
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(bytes(CollectiveType::kAllReduce), Bytes(8, 4000));
  EXPECT_EQ(bytes(CollectiveType::kReduceScatter),
            (Bytes{4000, 4000, 4000, 4000, 1000, 1000, 1000, 1000}));
  EXPECT_EQ(bytes(CollectiveType::kAllGather),
            (Bytes{4000, 4000, 4000, 4000, 16'000, 16'000, 16'000, 16'000}));
  EXPECT_EQ(bytes(CollectiveType::kBroadcast, 2), (Bytes{0, 0, 4000, 0, 4000, 4000, 0, 4000}));
  EXPECT_EQ(bytes(CollectiveType::kReduce, 2), (Bytes{4000, 4000, 4000, 4000, 0, 0, 4000, 0}));
}

TEST(InNetwork, AllReduceMovesHalfTheBytesOfARing) {
  constexpr int64_t kBytes = 64 << 10;
  const auto sum = [](CollectiveAlgorithm algorithm) {
    const SimMachine machine = SwitchMachineOf("Switch(64):50GB/s,250ns", algorithm);
    const auto result = RunSame(machine, CollectiveNode(CollectiveType::kAllReduce, kBytes));
    int64_t all = 0;
    for (const auto& [link, bytes] : LinkBytes(machine, *result)) all += bytes;
    return all;
  };
  EXPECT_EQ(sum(CollectiveAlgorithm::kInNetwork), 2 * 64 * kBytes);
  EXPECT_EQ(sum(CollectiveAlgorithm::kRing), 2 * 64 * 2 * 63 * kBytes / 64);
}

TEST(InNetwork, TheLastMemberDecidesTheBegin) {
  const SimMachine machine =
      SwitchMachineOf("Switch(4):50GB/s,250ns", CollectiveAlgorithm::kInNetwork);
  SimWorkload workload;
  for (int64_t rank = 0; rank < 4; ++rank) {
    workload.ranks.push_back(RankOf(ProgramOf(
        {{.duration = 1000 * (1 + rank % 3)}, CollectiveNode(CollectiveType::kAllReduce, 5000)},
        {{}, {0}})));
  }
  const auto result = Simulate(machine, workload);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(result->OfRank(rank).ends[1], 3000 + 520 + 100);
    EXPECT_EQ(result->OfRank(rank).collectives[0].source_class, 2U);
  }
}

TEST(InNetwork, TransfersShareLinksFairly) {
  // Two pairs with a member at either switch: each gets half of the link between the switches.
  const std::string network =
      "0 a 400GB/s 0ns\n1 a 400GB/s 0ns\n2 b 400GB/s 0ns\n3 b 400GB/s 0ns\na b 50GB/s 0ns\n";
  SimMachine machine = SwitchMachineOf(network, CollectiveAlgorithm::kInNetwork);
  machine.system.endpoint_delay = 30;
  SimWorkload workload{.groups = {{1, {0, 2}}, {2, {1, 3}}}};
  for (int64_t rank = 0; rank < 4; ++rank) {
    workload.ranks.push_back(RankOf(
        ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 50'000, 1)}, {{}}), {1 + rank % 2}));
  }
  const auto result = Simulate(machine, workload);
  ASSERT_TRUE(result) << result.error().message;
  // 50,000 bytes at 25 GB/s, handled before and after, in groups as in the whole network.
  for (int64_t rank = 0; rank < 4; ++rank) EXPECT_EQ(result->OfRank(rank).ends[0], 2000 + 2 * 30);
}

TEST(InNetwork, FatTreesUseOneTreeOfSwitches) {
  const SimMachine machine =
      SwitchMachineOf("FatTree(4):50GB/s,100ns", CollectiveAlgorithm::kInNetwork);
  const auto result = RunSame(machine, CollectiveNode(CollectiveType::kAllReduce, 5000));
  const std::map<std::string, int64_t> bytes = LinkBytes(machine, *result);
  // 16 NPUs, 8 edge switches, 4 aggregation switches, one core; three links up and three down.
  EXPECT_EQ(bytes.size(), 2U * (16 + 8 + 4));
  for (const auto& [link, carried] : bytes) EXPECT_EQ(carried, 5000) << link;
  EXPECT_EQ(result->OfRank(0).ends[0], 600 + 100 + 20);
  // NPUs at one edge switch need no other.
  SimWorkload workload{.groups = {{1, {0, 1}}}};
  for (int64_t rank = 0; rank < 16; ++rank) {
    workload.ranks.push_back(
        rank < 2
            ? RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 5000, 1)}, {{}}), {1})
            : RankOf(ProgramOf({}, {})));
  }
  const auto pair = Simulate(machine, workload);
  EXPECT_EQ(pair->OfRank(0).ends[0], 200 + 100 + 20);
  EXPECT_EQ(LinkBytes(machine, *pair).size(), 4U);
}

TEST(InNetwork, NetworksWithoutSwitchesAreErrors) {
  const auto error = [](const SimMachine& machine, uint32_t group = 0) {
    SimWorkload workload{.groups = {{1, {0, 3}}}};
    for (int64_t rank = 0; rank < machine.npus(); ++rank) {
      SimProgram program =
          ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 4000, group)}, {{}});
      const bool takes_part = group == 0 || rank == 0 || rank == 3;
      workload.ranks.push_back(RankOf(takes_part ? std::move(program) : ProgramOf({}, {}), {1}));
    }
    const auto result = Simulate(machine, workload);
    return result ? std::string("none") : result.error().message;
  };
  const CollectiveAlgorithm algorithm = CollectiveAlgorithm::kInNetwork;
  EXPECT_EQ(error(SwitchMachineOf("Ring(4):50GB/s,100ns", algorithm)),
            "rank 3: node 0: found no switch that connects the 4 ranks of the collective in "
            "Ring(4), expected one for a collective in the network");
  SimMachine several = SwitchMachineOf("Switch(2):50GB/s,1us Switch(2):50GB/s,1us", algorithm);
  EXPECT_EQ(error(several), "none");
  several.system.algorithms[CollectiveType::kAllReduce] = {{.algorithm = algorithm}};
  EXPECT_EQ(error(several, 1),
            "rank 3: node 0: found 2 ranks that differ in dimensions 0 and 1 of the network, "
            "expected ranks of one dimension for a collective in the network");
  EXPECT_EQ(error(testing_sim::MachineOf({{.npus = 4, .bandwidth = 50, .latency = 5}}, algorithm)),
            "found the algorithm inNetwork for all_reduce, which requires --model etude-1 and a "
            "network with switches");
  several.system.algorithms[CollectiveType::kAllToAll] = {{.algorithm = algorithm}};
  EXPECT_EQ(error(several),
            "found the algorithm inNetwork for all_to_all, expected another one: switches cannot "
            "reduce or multicast its data");
}

// Random jobs on networks with switches, with all algorithms of the table. Without a second
// engine: every rank finishes, all parts of a collective's time add up, and no link carries more
// than its bandwidth.
TEST(InNetwork, RandomJobsOnNetworksWithSwitches) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto one_of = [&](const std::vector<int64_t>& values) {
      return values[random() % values.size()];
    };
    const int64_t npus = one_of({2, 3, 4, 5, 8});
    const std::vector<std::string> networks = {
        fmt::format("Switch({}):{}GB/s,250ns", npus, one_of({7, 50})),
        "Switch(2):50GB/s,100ns Switch(4):20GB/s,1us", "FatTree(4,2):50GB/s,100ns",
        "0 a 40GB/s 3ns\n1 a 40GB/s 3ns\n2 b 70GB/s 0ns\n3 b 40GB/s 0ns\na b 50GB/s 9ns\n"};
    SimMachine machine =
        SwitchMachineOf(networks[random() % networks.size()], CollectiveAlgorithm::kRing);
    machine.system.endpoint_delay = one_of({0, 10});
    machine.system.splits = one_of({1, 2, 4});
    machine.system.active_chunks = one_of({1, 2, 4});
    machine.system.queues = one_of({1, 2});
    machine.system.bandwidth_aware = random() % 2 == 0;
    machine.system.rendezvous = random() % 4 == 0;
    if (random() % 2 == 0) machine.routes = RouteChoice::kLeastLoaded;
    const int64_t total = machine.npus();
    for (const CollectiveType type : kReducedTypes) {
      std::vector<AlgorithmChoice>& choices = machine.system.algorithms[type];
      choices.clear();
      for (size_t dim = 0; dim < machine.dims.size(); ++dim) {
        std::vector<AlgorithmChoice> fitting;
        for (const AlgorithmInfo& info : AlgorithmTable()) {
          const bool stands_alone = info.algorithm == CollectiveAlgorithm::kSlicedAllReduce;
          if (!info.IsFor(type) || (stands_alone && machine.dims.size() > 1)) continue;
          fitting.push_back({.algorithm = info.algorithm});
        }
        choices.push_back(fitting[random() % fitting.size()]);
      }
      if (OwnAlgorithm(type) && random() % 2 == 0) machine.system.algorithms.erase(type);
    }
    const bool grouped = total % 2 == 0 && total > 2;
    SimWorkload workload;
    for (int64_t rank = 0; grouped && rank < total; ++rank) {
      workload.groups[1 + rank % 2].push_back(rank);
    }
    std::vector<SimNode> nodes;
    std::vector<std::vector<uint32_t>> befores;
    for (uint32_t i = 0; i < 6; ++i) {
      SimNode node = CollectiveNode(kReducedTypes[random() % 6], one_of({0, 1, 999, 4096, 100'000}),
                                    grouped ? static_cast<uint32_t>(random() % 2) : 0);
      node.root = node.group == 0 ? one_of({0, total - 1}) : 0;
      nodes.push_back({.duration = 1});
      nodes.push_back(node);
      befores.emplace_back();
      befores.emplace_back(std::vector<uint32_t>{2 * i});
      if (i > 0) befores.back().push_back(2 * i - 1);
    }
    for (int64_t rank = 0; rank < total; ++rank) {
      for (uint32_t i = 0; i < 6; ++i) nodes[2 * i].duration = one_of({1, 300, 5000});
      workload.ranks.push_back(RankOf(ProgramOf(nodes, befores), {1 + rank % 2}));
    }
    const auto result = Simulate(machine, workload);
    std::string what = fmt::format("seed {}, {} ranks:", seed, total);
    for (const auto& [type, choices] : machine.system.algorithms) {
      what += fmt::format(" {}", Name(type));
      for (const AlgorithmChoice& choice : choices) what += " " + AlgorithmName(choice);
    }
    ASSERT_TRUE(result) << what << result.error().message;
    for (int64_t rank = 0; rank < total; ++rank) {
      const SimRankResult& one = result->OfRank(rank);
      ASSERT_TRUE(one.finished) << what;
      for (const SimCollectiveEnd& end : one.collectives) {
        const int64_t begin = result->ranks[end.source_class].begins[end.source_node];
        ASSERT_EQ(end.latency + end.transfer + end.handling + end.queue, one.ends[end.node] - begin)
            << what;
        for (const int64_t part : {end.latency, end.transfer, end.handling, end.queue}) {
          ASSERT_GE(part, 0) << what;
        }
      }
    }
    for (const SimLinkUse& link : result->links) ASSERT_LE(link.busy, result->time) << what;
    const auto again = Simulate(machine, workload);
    for (int64_t rank = 0; rank < total; ++rank) {
      ASSERT_EQ(again->OfRank(rank).ends, result->OfRank(rank).ends) << what;
    }
  }
}

}  // namespace
}  // namespace etude

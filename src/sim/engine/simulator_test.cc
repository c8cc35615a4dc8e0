#include "src/sim/engine/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/program/workload.h"
#include "src/sim/testing/astra_cases_testing.h"
#include "src/sim/testing/random_simulation_testing.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

// 4 chunks of 262,144 bytes, messages of 32,768: T = 500 + 610.35 = 1,110 ns, reduction 1,965 ns.
// Each chunk takes 14 T + 15 · 10 + 7 · 1,965.
TEST(Simulator, RingAllReduce) {
  const SimMachine machine =
      MachineOf({{.npus = 8, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
  const SimWorkload workload{
      .ranks = std::vector<SimRank>(
          8, RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 1 << 20)}, {{}})))};
  for (const bool by_class : {false, true}) {
    const SimResult result = Simulate(machine, workload, {.by_class = by_class}).value();
    EXPECT_EQ(result.ranks.size(), by_class ? 1u : 8u);
    for (int64_t rank = 0; rank < 8; ++rank) {
      EXPECT_TRUE(result.OfRank(rank).finished);
      EXPECT_EQ(result.OfRank(rank).end, 4 * (14 * 1110 + 15 * 10 + 7 * 1965));
    }
  }
}

TEST(Simulator, TellsOfProgressAndStops) {
  SimMachine machine =
      MachineOf({{.npus = 8, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
  machine.system.splits = 64;
  const SimNode node = CollectiveNode(CollectiveType::kAllReduce, 1 << 20);
  const SimWorkload workload{
      .ranks = std::vector<SimRank>(8, RankOf(ProgramOf({node, node}, {{}, {0}})))};
  std::atomic<bool> stop = false;
  uint64_t reports = 0;
  RunContext context{.progress =
                         [&](std::string_view what, uint64_t done, uint64_t total) {
                           EXPECT_TRUE(what.starts_with("simulated ")) << what;
                           EXPECT_LE(done, total);
                           EXPECT_EQ(total, 16u);
                           ++reports;
                         },
                     .stop = &stop};
  const SimOptions options{.by_class = false, .context = &context};
  const SimResult whole = Simulate(machine, workload, options).value();
  EXPECT_FALSE(whole.stopped);
  EXPECT_GT(reports, 0u);
  EXPECT_EQ(whole.time, whole.OfRank(0).end);
  stop = true;
  const SimResult cut = Simulate(machine, workload, options).value();
  EXPECT_TRUE(cut.stopped);
  EXPECT_GT(cut.time, 0);
  EXPECT_LT(cut.time, whole.time);
  EXPECT_FALSE(cut.OfRank(0).finished);
}

// With G alone, 32,768 bytes take 124 ns on the second bus, 3,276 ns on the bus, 377 ns to be added
// there and 1,965 ns in memory. At the start and at the end a message crosses both; the message
// that is added crosses the bus, and the second one three times.
TEST(Simulator, SharedBus) {
  SimMachine machine =
      MachineOf({{.npus = 2, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
  machine.system.splits = 1;
  machine.system.shared_bus = SharedBus{.nanos_of_byte = 0.1};
  const SimWorkload workload{
      .ranks = std::vector<SimRank>(
          2, RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 1 << 16)}, {{}})))};
  for (const bool by_class : {false, true}) {
    const SimResult result = Simulate(machine, workload, {.by_class = by_class}).value();
    EXPECT_EQ(result.ranks.size(), 2u);  // ranks with buses are simulated one by one
    const int64_t added = 3276 + 3 * 124 + 377 + 1965;
    EXPECT_EQ(result.OfRank(1).end, 2 * (124 + 3276 + 1110) + added);
  }
}

// 32,768 bytes take 1,110 ns, two and four times as many 1,720 and 2,941 ns, none 500 ns. Each rank
// on the way handles them for 10 ns, and adds them in 1,965 ns.
TEST(Simulator, TreesBelowARootAndBarriers) {
  SimMachine machine = MachineOf(
      {{.shape = NetworkShape::kFullyConnected, .npus = 8, .bandwidth = 50, .latency = 500}},
      CollectiveAlgorithm::kRing);
  machine.system.splits = 1;
  const auto last_end = [&](CollectiveType type, int64_t bytes) {
    const SimWorkload workload{
        .ranks = std::vector<SimRank>(8, RankOf(ProgramOf({CollectiveNode(type, bytes)}, {{}})))};
    const SimResult result = Simulate(machine, workload).value();
    int64_t last = 0;
    for (int64_t rank = 0; rank < 8; ++rank) last = std::max(last, result.OfRank(rank).end);
    return last;
  };
  EXPECT_EQ(last_end(CollectiveType::kBroadcast, 32768), 10 + 3 * (1110 + 10));
  EXPECT_EQ(last_end(CollectiveType::kReduce, 32768), 10 + 3 * (1110 + 10 + 1965));
  EXPECT_EQ(last_end(CollectiveType::kScatter, 8 * 32768), 10 + 2941 + 10 + 1720 + 10 + 1110 + 10);
  EXPECT_EQ(last_end(CollectiveType::kGather, 32768), 10 + 1110 + 10 + 1720 + 10 + 2941 + 10);
  EXPECT_EQ(last_end(CollectiveType::kBarrier, 0), 10 + 3 * (500 + 10));
}

// No other rank takes part in what rank 0 waits for.
TEST(Simulator, RanksThatWaitForEver) {
  const SimMachine machine =
      MachineOf({{.npus = 2, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
  const SimWorkload workload{
      .ranks = {
          RankOf(ProgramOf({{.kind = NodeKind::kRecv, .peer = 0, .bytes = 8}, {.duration = 5}},
                           {{}, {0}}),
                 {}, {1}),
          RankOf(ProgramOf({{.kind = NodeKind::kSend, .peer = 0, .bytes = 16}}, {{}}), {}, {0})}};
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_FALSE(result.OfRank(0).finished);
  EXPECT_TRUE(result.OfRank(1).finished);
}

// Rank 1's second all-reduce is the first one of group 2: both of its ranks take the first tree.
TEST(Simulator, TreesOfGroupsTakeTurnsByThemselves) {
  SimMachine machine = MachineOf({{.npus = 3, .bandwidth = 50, .latency = 500}},
                                 CollectiveAlgorithm::kDoubleBinaryTree);
  machine.system.splits = 1;
  const SimProgram one = ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 4096, 1)}, {{}});
  const SimProgram two = ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 4096, 1),
                                    CollectiveNode(CollectiveType::kAllReduce, 4096, 2)},
                                   {{}, {0}});
  const SimWorkload workload{.ranks = {RankOf(one, {1}), RankOf(two, {1, 2}), RankOf(one, {2})},
                             .groups = {{1, {0, 1}}, {2, {1, 2}}}};
  const SimResult result = Simulate(machine, workload).value();
  for (int64_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(result.OfRank(rank).finished) << rank;
}

// Random machines and programs: simulation by class gives the same results as simulation by rank.
class RandomSim {
 public:
  explicit RandomSim(uint32_t seed) : random_(seed) {}

  int64_t OneOf(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  SimMachine Machine() {
    std::vector<NetworkDim> dims;
    const int64_t count = OneOf({1, 1, 2, 3});
    for (int64_t i = 0; i < count; ++i) {
      dims.push_back({.shape = static_cast<NetworkShape>(random_() % 3),
                      .npus = count == 1 ? OneOf({2, 3, 5, 8}) : OneOf({2, 4}),
                      .bandwidth = static_cast<double>(OneOf({7, 50, 200})),
                      .latency = static_cast<double>(OneOf({0, 10, 333, 500}))});
    }
    // An algorithm that is simulated by class.
    std::vector<CollectiveAlgorithm> algorithms;
    for (const AlgorithmInfo& info : AlgorithmTable()) {
      const bool fits =
          std::ranges::all_of(dims, [&](const NetworkDim& dim) { return info.Fits(dim.npus); });
      if (info.in_files && !info.only_graph && info.class_safe() && fits)
        algorithms.push_back(info.algorithm);
    }
    const CollectiveAlgorithm algorithm = algorithms[random_() % algorithms.size()];
    const bool has_window = Info(algorithm).has_window && random_() % 2 == 0;
    SimMachine machine =
        MachineOf(std::move(dims), algorithm,
                  has_window ? std::optional<int64_t>(OneOf({1, 2})) : std::nullopt);
    machine.system.order = static_cast<StreamOrder>(random_() % 3);
    machine.system.endpoint_delay = OneOf({0, 1, 10, 10});
    machine.system.active_chunks = OneOf({1, 2, 8});
    machine.system.splits = OneOf({1, 3, 4});
    machine.system.queues = OneOf({1, 1, 2, 4});
    machine.system.bandwidth_aware = random_() % 2 == 0;
    machine.system.rendezvous = random_() % 8 == 0;
    return machine;
  }

  // Ranks do nearly the same: 0 computations, 1 and 2 collectives, 3 and 4 collectives of groups,
  // and messages.
  static constexpr int kSends = 5;
  static constexpr int kReceives = 6;
  SimWorkload Workload(int64_t ranks) {
    SimWorkload workload;
    RankGroups& groups = workload.groups;
    const int64_t half = ranks / 2;
    const bool grouped = ranks % 2 == 0 && ranks > 2 && random_() % 2 == 0;
    if (grouped) {
      for (int64_t rank = 0; rank < ranks; ++rank) groups[1 + rank / half].push_back(rank);
      for (int64_t rank = 0; rank < ranks; ++rank) groups[3 + rank % half].push_back(rank);
    }
    const int64_t slow = random_() % 3 == 0 ? OneOf({0, 1, ranks - 1}) : -1;
    const int64_t far = OneOf({1, half});  // distance from a sender to its receiver
    const size_t count = 2 + random_() % 6;
    std::vector<SimNode> nodes;
    std::vector<std::vector<uint32_t>> befores;
    std::vector<int> kinds;
    for (uint32_t i = 0; i < count; ++i) {
      int kind = static_cast<int>(random_() % (grouped ? 5 : 3));
      if (random_() % 4 == 0) kind = kSends;
      if (i > 0 && kinds.back() == kSends) kind = kReceives;
      kinds.push_back(kind);
      SimNode node{.duration = OneOf({0, 100, 500, 1110, 5000})};
      if (kind == kSends || kind == kReceives) {
        node = {.kind = kind == kSends ? NodeKind::kSend : NodeKind::kRecv,
                .peer = kind == kSends ? 0u : 1u,
                .bytes = kind == kSends ? OneOf({1000, 32768}) : nodes.back().bytes,
                .tag = kind == kSends ? i : nodes.back().tag};
      } else if (kind >= 1) {
        static constexpr CollectiveType kTypes[] = {
            CollectiveType::kAllReduce, CollectiveType::kAllGather, CollectiveType::kReduceScatter,
            CollectiveType::kAllToAll};
        node = CollectiveNode(kTypes[random_() % 4], OneOf({4096, 32768, 1 << 20}));
        node.priority = OneOf({0, 1, 2});
      }
      nodes.push_back(node);
      std::vector<uint32_t>& before = befores.emplace_back();
      for (uint32_t j = 0; j < i; ++j) {
        // Collectives keep one order, because their chunks are matched by it.
        const bool both = kinds[i] > 0 && kinds[j] > 0 && kinds[i] < kSends && kinds[j] < kSends;
        // Receives with fewer dependencies than their sends avoid deadlocks.
        if (kind == kReceives ? both : both || random_() % 3 == 0) before.push_back(j);
      }
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<SimNode> mine = nodes;
      for (size_t i = 0; i < count; ++i) {
        if (kinds[i] == 3) mine[i].group = 1;
        if (kinds[i] == 4) mine[i].group = 2;
        if (kinds[i] == 0 && rank == slow) mine[i].duration += 77;
      }
      std::vector<int64_t> of_rank;
      if (grouped) of_rank = {1 + rank / half, 3 + rank % half};
      workload.ranks.push_back(RankOf(ProgramOf(std::move(mine), befores), std::move(of_rank),
                                      {(rank + far) % ranks, (rank + ranks - far) % ranks}));
    }
    return workload;
  }

 private:
  std::mt19937 random_;
};

TEST(Simulator, ClassesOfRanksGiveWhatEachRankGives) {
  uint64_t by_class = 0;
  uint64_t finished = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    RandomSim random(seed);
    const SimMachine machine = random.Machine();
    const SimWorkload workload = random.Workload(machine.npus());
    const auto whole = Simulate(machine, workload, {.by_class = false});
    const auto classes = Simulate(machine, workload);
    ASSERT_TRUE(whole && classes) << seed << ": " << (whole ? "" : whole.error().message);
    by_class += classes->ranks.size() < whole->ranks.size() ? 1 : 0;
    finished += whole->OfRank(0).finished ? 1 : 0;
    for (int64_t rank = 0; rank < machine.npus(); ++rank) {
      const SimRankResult& expected = whole->OfRank(rank);
      const SimRankResult& got = classes->OfRank(rank);
      ASSERT_EQ(got.finished, expected.finished) << seed;
      ASSERT_EQ(got.begins, expected.begins) << seed << ", rank " << rank;
      ASSERT_EQ(got.ends, expected.ends) << seed << ", rank " << rank;
      ASSERT_EQ(got.comm, expected.comm) << seed;
    }
  }
  EXPECT_GT(by_class, 120u);
  EXPECT_GT(finished, 180u);
}

TEST(Simulator, AstraSimsCases) {
  ExpectAstraSimsCases([](const SimMachine& machine, const SimWorkload& workload) {
    return Simulate(machine, workload);
  });
}

// The examples that come with ASTRA-sim; the folder has the cases of the test above as well.
TEST(Simulator, SharedAstraSimsCases) {
  const std::filesystem::path cases = ETUDE_SHARED_DATA "/astra-sim";
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "no cases at " << cases;
  ExpectAstraSimsCases(cases, 171, [](const SimMachine& machine, const SimWorkload& workload) {
    return Simulate(machine, workload);
  });
}

}  // namespace
}  // namespace etude

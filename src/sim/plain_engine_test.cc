#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/sim/astra_cases_testing.h"
#include "src/sim/plain_engine_testing.h"
#include "src/sim/random_simulation_testing.h"
#include "src/sim/sim_testing.h"
#include "src/sim/simulator.h"

// Simulate, by classes of ranks and by each rank, against the plain engine. By default a part of
// all cases; ETUDE_ALL_SIMULATIONS=1 has all of them, which takes some minutes:
//   ETUDE_ALL_SIMULATIONS=1 build/bin/etude_tests --gtest_filter='PlainEngine.*'
namespace etude {
namespace {

bool IsWhole() { return std::getenv("ETUDE_ALL_SIMULATIONS") != nullptr; }

struct Counts {
  int errors = 0;
  int unfinished = 0;
  int by_class = 0;
};

void ExpectSame(const SimResult& got, const SimResult& expected, const std::string& what) {
  ASSERT_EQ(got.class_of.size(), expected.class_of.size()) << what;
  for (size_t i = 0; i < expected.class_of.size(); ++i) {
    const std::string where = what + ", rank " + std::to_string(i);
    const SimRankResult& a = got.OfRank(static_cast<int64_t>(i));
    const SimRankResult& b = expected.OfRank(static_cast<int64_t>(i));
    ASSERT_EQ(a.finished, b.finished) << where;
    ASSERT_EQ(a.begins, b.begins) << where;
    ASSERT_EQ(a.ends, b.ends) << where;
    ASSERT_EQ(a.end, b.end) << where;
    ASSERT_EQ(a.computed, b.computed) << where;
    ASSERT_EQ(a.wall, b.wall) << where;
    ASSERT_EQ(a.host, b.host) << where;
    ASSERT_EQ(a.device, b.device) << where;
    ASSERT_EQ(a.comm, b.comm) << where;
    ASSERT_EQ(a.memory, b.memory) << where;
  }
}

void ExpectAllSame(const SimMachine& machine, const SimWorkload& workload, const std::string& what,
                   Counts& counts) {
  const auto plain = plain::Simulate(machine, workload);
  const auto each = Simulate(machine, workload, {.by_class = false});
  const auto classes = Simulate(machine, workload);
  ASSERT_EQ(each.has_value(), plain.has_value())
      << what << ": " << (each ? plain.error().message : each.error().message);
  ASSERT_EQ(classes.has_value(), plain.has_value()) << what;
  if (!plain) {
    ++counts.errors;
    return;
  }
  ExpectSame(*each, *plain, what + ", each rank");
  ExpectSame(*classes, *plain, what + ", classes");
  ASSERT_EQ(each->messages, plain->messages) << what;
  ASSERT_EQ(each->unreceived, plain->unreceived) << what;
  counts.by_class += classes->ranks.size() < plain->ranks.size() ? 1 : 0;
  for (const SimRankResult& rank : plain->ranks) {
    if (rank.finished) continue;
    ++counts.unfinished;
    break;
  }
}

TEST(PlainEngine, RandomSimulations) {
  const uint32_t stride = IsWhole() ? 1 : 40;
  Counts counts;
  int all = 0;
  for (uint32_t seed = 0; seed < 10'000; seed += stride) {
    const RandomSimulation random(seed);
    ++all;
    ExpectAllSame(random.machine, random.workload, "seed " + std::to_string(seed), counts);
    if (testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << random.Describe();
      return;
    }
  }
  // Most run to their end, some do not.
  EXPECT_LT(counts.errors, all / 5);
  EXPECT_GT(counts.unfinished, all / 50);
  EXPECT_LT(counts.unfinished, all / 2);
  EXPECT_GT(counts.by_class, all / 20);
}

TEST(PlainEngine, AstraSimsCases) {
  if (!IsWhole()) GTEST_SKIP() << "takes some seconds: with ETUDE_ALL_SIMULATIONS=1";
  ExpectAstraSimsCases([](const SimMachine& machine, const SimWorkload& workload) {
    return plain::Simulate(machine, workload);
  });
}

// Two ranks with `count` nodes each, whatever they wait for and do: on the device, on the host,
// all-reduces, and messages from the first rank to the second.
SimWorkload SmallGraph(uint32_t count, uint32_t edges, uint32_t kinds) {
  std::vector<SimNode> nodes[2];
  std::vector<std::vector<uint32_t>> befores;
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint32_t>& before = befores.emplace_back();
    for (uint32_t j = 0; j < i; ++j, edges >>= 1) {
      if ((edges & 1) != 0) before.push_back(j);
    }
    SimNode node;
    switch (kinds >> (2 * i) & 3) {
      case 0: node.duration = 100 + 1000 * i; break;
      case 1:
        node.duration = 40 + 700 * i;
        node.on_host = true;
        break;
      case 2:
        node.kind = NodeKind::kCollective;
        node.collective = CollectiveType::kAllReduce;
        node.bytes = 4096;
        break;
      default:
        node.kind = NodeKind::kSend;
        node.peer = 0;
        node.bytes = 1024;
    }
    nodes[0].push_back(node);
    if (node.kind == NodeKind::kSend) node.kind = NodeKind::kRecv;
    nodes[1].push_back(node);
  }
  SimWorkload workload;
  for (int64_t rank = 0; rank < 2; ++rank) {
    workload.ranks.push_back({.program = std::make_shared<const SimProgram>(
                                  testing_sim::ProgramOf(nodes[rank], befores)),
                              .groups = {},
                              .peers = {1 - rank}});
  }
  return workload;
}

TEST(PlainEngine, SmallGraphs) {
  SimMachine machine;
  machine.dims = {{.npus = 2, .bandwidth = 50, .latency = 300}};
  machine.system.algorithms[CollectiveType::kAllReduce] = {{}};
  Counts counts;
  uint32_t all = 0;
  for (uint32_t count = 1; count <= 5; ++count) {
    const uint32_t edges = 1u << (count * (count - 1) / 2);
    const uint32_t kinds = 1u << (2 * count);
    // Prime, so that it meets all dependencies and all kinds.
    const uint32_t stride = IsWhole() || count < 4 ? 1 : count == 4 ? 3 : 997;
    for (uint32_t i = 0; i < edges * kinds; i += stride, ++all) {
      machine.congestion = i % 2 == 1;
      const SimWorkload workload = SmallGraph(count, i / kinds, i % kinds);
      ExpectAllSame(machine, workload, fmt::format("{} nodes, number {}", count, i), counts);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(counts.errors, 0);
  EXPECT_GT(counts.by_class, 0);
}

}  // namespace
}  // namespace etude

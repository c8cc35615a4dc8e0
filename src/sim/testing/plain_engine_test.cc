#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/testing/astra_cases_testing.h"
#include "src/sim/testing/plain_engine_testing.h"
#include "src/sim/testing/random_simulation_testing.h"
#include "src/sim/testing/sim_testing.h"

// Compares Simulate, by class and by rank, with the plain engine. Runs a part of the cases by
// default. ETUDE_ALL_SIMULATIONS=1 runs all of them, which takes some minutes in a release build:
//   ETUDE_ALL_SIMULATIONS=1 build/bin/etude_tests --gtest_filter='PlainEngine.*'
namespace etude {
namespace {

bool IsWhole() { return std::getenv("ETUDE_ALL_SIMULATIONS") != nullptr; }

struct Counts {
  int errors = 0;
  int unfinished = 0;
  int by_class = 0;
  int with_queues = 0;  // by class, with congestion
  int all = 0;

  Counts& operator+=(const Counts& more) {
    errors += more.errors;
    unfinished += more.unfinished;
    by_class += more.by_class;
    with_queues += more.with_queues;
    all += more.all;
    return *this;
  }
};

// Calls `run` for each number below `count`, on all cores, until a check fails.
Counts InParallel(size_t count, const std::function<void(size_t, Counts&)>& run) {
  constexpr size_t kBlock = 64;
  const auto run_block = [&](size_t block, const RunContext&) -> Result<Counts> {
    Counts counts;
    for (size_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
      run(i, counts);
      if (testing::Test::HasFatalFailure()) return MakeError(ErrorCode::kInternal, "failed");
    }
    return counts;
  };
  Counts all;
  const auto blocks =
      ForEachRank<Counts>((count + kBlock - 1) / kBlock, 0, RunContext(), run_block);
  if (!blocks) return all;
  for (const Counts& block : *blocks) all += block;
  return all;
}

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

// Links with queues are those of all ranks, also with classes.
void ExpectSameLinks(const SimResult& got, const SimResult& expected, const std::string& what) {
  ASSERT_EQ(got.links.size(), expected.links.size()) << what;
  for (size_t i = 0; i < expected.links.size(); ++i) {
    const SimLinkUse& a = got.links[i];
    const SimLinkUse& b = expected.links[i];
    const std::string where = what + ", link " + std::to_string(i);
    ASSERT_EQ(a.from, b.from) << where;
    ASSERT_EQ(a.to, b.to) << where;
    ASSERT_EQ(a.messages, b.messages) << where;
    ASSERT_EQ(a.bytes, b.bytes) << where;
    ASSERT_EQ(a.busy, b.busy) << where;
    ASSERT_EQ(a.waited, b.waited) << where;
  }
}

// Checks that the parts of each collective's time add up to it.
void ExpectWholeEnds(const SimResult& result, const SimMachine& machine,
                     const SimWorkload& workload, const std::string& what) {
  for (size_t i = 0; i < result.ranks.size(); ++i) {
    const SimRankResult& rank = result.ranks[i];
    const std::vector<SimNode>& nodes =
        workload.ranks[static_cast<size_t>(result.first[i])].program->nodes;
    auto next = rank.collectives.begin();
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].kind != NodeKind::kCollective || rank.ends[node] < 0) continue;
      if (machine.system.replay_only || machine.system.Replays(nodes[node])) continue;
      ASSERT_NE(next, rank.collectives.end()) << what;
      const SimCollectiveEnd& end = *next++;
      ASSERT_EQ(end.node, node) << what;
      for (const int64_t part : {end.latency, end.transfer, end.handling, end.queue}) {
        ASSERT_GE(part, 0) << what;
      }
      const int64_t begin = result.ranks[end.source_class].begins[end.source_node];
      ASSERT_GE(begin, 0) << what;
      ASSERT_EQ(end.latency + end.transfer + end.handling + end.queue, rank.ends[node] - begin)
          << what << ", class " << i << ", node " << node;
    }
    ASSERT_EQ(next, rank.collectives.end()) << what;
  }
}

void ExpectAllSame(const SimMachine& machine, const SimWorkload& workload, const std::string& what,
                   Counts& counts) {
  ++counts.all;
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
  ExpectWholeEnds(*each, machine, workload, what + ", each rank");
  ExpectWholeEnds(*classes, machine, workload, what + ", classes");
  ASSERT_EQ(each->messages, plain->messages) << what;
  ASSERT_EQ(each->unreceived, plain->unreceived) << what;
  if (machine.congestion) ExpectSameLinks(*classes, *each, what);
  const bool by_class = classes->ranks.size() < plain->ranks.size();
  counts.by_class += by_class ? 1 : 0;
  counts.with_queues += by_class && machine.congestion ? 1 : 0;
  for (const SimRankResult& rank : plain->ranks) {
    if (rank.finished) continue;
    ++counts.unfinished;
    break;
  }
}

TEST(PlainEngine, RandomSimulations) {
  const uint32_t stride = IsWhole() ? 1 : 40;
  const Counts counts = InParallel(10'000 / stride, [&](size_t i, Counts& some) {
    const auto seed = static_cast<uint32_t>(i) * stride;
    const RandomSimulation random(seed);
    ExpectAllSame(random.machine, random.workload, fmt::format("seed {}", seed), some);
    if (testing::Test::HasFatalFailure()) ADD_FAILURE() << random.Describe();
  });
  // Most run to their end, some do not.
  EXPECT_LT(counts.errors, counts.all / 5);
  EXPECT_GT(counts.unfinished, counts.all / 50);
  EXPECT_LT(counts.unfinished, counts.all / 2);
  EXPECT_GT(counts.by_class, counts.all / 20);
  EXPECT_GT(counts.with_queues, counts.all / 300);
}

// Seeds that once failed, of 300,000: partners at powers of two beside an algorithm in which all
// are partners, and a bus beside rings.
TEST(PlainEngine, SomeRandomSimulations) {
  for (const uint32_t seed : {18'645u, 159'485u}) {
    const RandomSimulation random(seed);
    Counts counts;
    ExpectAllSame(random.machine, random.workload, fmt::format("seed {}", seed), counts);
    EXPECT_EQ(counts.by_class, random.machine.system.shared_bus ? 0 : 1) << seed;
  }
}

TEST(PlainEngine, AstraSimsCases) {
  const auto simulate = [](const SimMachine& machine, const SimWorkload& workload) {
    return plain::Simulate(machine, workload);
  };
  // All take some seconds.
  IsWhole() ? ExpectAstraSimsCases(simulate) : ExpectFewAstraSimsCases(simulate);
}

// Dependencies of up to five nodes: a bit mask per node.
struct SmallOrder {
  uint32_t count = 0;
  std::array<uint8_t, 5> waits{};

  bool Has(uint32_t node, uint32_t other) const { return (waits[node] >> other & 1) != 0; }
};

bool IsAcyclic(const SmallOrder& order) {
  uint32_t ended = 0;
  for (uint32_t round = 0; round < order.count; ++round) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < order.count; ++i) {
      if ((order.waits[i] & ~ended) == 0) ready |= 1u << i;
    }
    ended |= ready;
  }
  return ended == (1u << order.count) - 1;
}

// Returns whether the node depends on `other`, directly or indirectly.
bool WaitsFor(const SmallOrder& order, uint32_t node, uint32_t other, uint32_t seen = 0) {
  if (order.Has(node, other)) return true;
  for (uint32_t i = 0; i < order.count; ++i) {
    if (!order.Has(node, i) || (seen >> i & 1) != 0) continue;
    if (WaitsFor(order, i, other, seen | 1u << i)) return true;
  }
  return false;
}

// Returns all graphs of `count` nodes, except equivalent ones.
//
// Graphs that differ by renumbering are all kept: numbers decide which node begins first, and a
// node may depend on one with a higher number. Graphs with a transitive dependency are omitted,
// unless the nodes' numbers ascend, where all are kept. A transitive dependency changes nothing:
// the node is ready when its last dependency has ended, which is never the transitive one.
std::vector<SmallOrder> SmallOrders(uint32_t count) {
  std::vector<SmallOrder> orders;
  const uint32_t bits = count * (count - 1);
  for (uint32_t edges = 0; edges < 1u << bits; ++edges) {
    SmallOrder order{.count = count};
    uint32_t left = edges;
    bool ascends = true;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t others = left & ((1u << (count - 1)) - 1);
      left >>= count - 1;
      const uint32_t below = others & ((1u << i) - 1);
      ascends = ascends && below == others;
      order.waits[i] = static_cast<uint8_t>(below | (others ^ below) << 1);  // never on itself
    }
    const auto is_needless = [&](uint32_t node, uint32_t other) {
      SmallOrder rest = order;
      rest.waits[node] = static_cast<uint8_t>(rest.waits[node] & ~(1u << other));
      return WaitsFor(rest, node, other);
    };
    bool taken = ascends || IsAcyclic(order);
    for (uint32_t i = 0; i < count && !ascends && taken; ++i) {
      for (uint32_t j = 0; j < count && taken; ++j) {
        if (order.Has(i, j)) taken = !is_needless(i, j);
      }
    }
    if (taken) orders.push_back(order);
  }
  return orders;
}

// Two ranks with the same nodes, for all dependencies and kinds: on the device, on the host,
// all-reduces, and messages from the first rank to the second.
SimWorkload SmallGraph(const SmallOrder& order, uint32_t kinds) {
  std::vector<SimNode> nodes[2];
  std::vector<std::vector<uint32_t>> befores;
  for (uint32_t i = 0; i < order.count; ++i) {
    std::vector<uint32_t>& before = befores.emplace_back();
    for (uint32_t j = 0; j < order.count; ++j) {
      if (order.Has(i, j)) before.push_back(j);
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
                                  testing_sim::ProgramOf(std::move(nodes[rank]), befores)),
                              .groups = {},
                              .peers = {1 - rank}});
  }
  return workload;
}

TEST(PlainEngine, SmallOrdersAreAllThatThereAre) {
  // Partial orders of labelled elements (OEIS A001035), and graphs with ascending numbers, of which
  // those without a transitive dependency are partial orders, too (A006455).
  const size_t orders[] = {1, 3, 19, 219, 4231};
  const size_t ascending[] = {1, 2, 8, 64, 1024};
  const size_t both[] = {1, 2, 7, 40, 357};
  for (uint32_t count = 1; count <= 5; ++count) {
    EXPECT_EQ(SmallOrders(count).size(),
              orders[count - 1] + ascending[count - 1] - both[count - 1]);
  }
}

TEST(PlainEngine, SmallGraphs) {
  Counts counts;
  for (uint32_t count = 1; count <= 5; ++count) {
    const std::vector<SmallOrder> orders = SmallOrders(count);
    const auto kinds = size_t{1} << (2 * count);
    // Primes, so that all dependencies and all kinds are covered.
    const size_t stride = IsWhole() || count < 4 ? 1 : count == 4 ? 31 : 4999;
    const size_t cases = (orders.size() * kinds + stride - 1) / stride;
    counts += InParallel(cases, [&](size_t i, Counts& some) {
      SimMachine machine;
      machine.dims = {{.npus = 2, .bandwidth = 50, .latency = 300}};
      machine.system.algorithms[CollectiveType::kAllReduce] = {{}};
      const size_t number = i * stride;
      const SimWorkload workload =
          SmallGraph(orders[number / kinds], static_cast<uint32_t>(number % kinds));
      for (const bool congestion : {false, true}) {
        machine.congestion = congestion;
        ExpectAllSame(
            machine, workload,
            fmt::format("{} nodes, number {}{}", count, number, congestion ? ", congestion" : ""),
            some);
      }
    });
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(counts.errors, 0);
  EXPECT_GT(counts.by_class, 0);
  RecordProperty("graphs", std::to_string(counts.all));
}

}  // namespace
}  // namespace etude

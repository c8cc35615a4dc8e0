#include "src/sim/machine/link_faults.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/fault_text.h"
#include "src/sim/testing/random_simulation_testing.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

SimMachine FaultyRing(NetworkShape shape, bool congestion, const std::string& links) {
  SimMachine machine;
  machine.dims = {{.shape = shape, .npus = 4, .bandwidth = 50, .latency = 500}};
  machine.congestion = congestion;
  EXPECT_TRUE(AddSlowLinks(links, machine));
  return machine;
}

// Returns the time of 32,768 bytes from rank 0 to another: at 50 GiB/s 610.35 ns per link.
int64_t TimeOfMessage(const SimMachine& machine, int64_t to) {
  const auto program = [](std::vector<SimNode> nodes) {
    const std::vector<std::vector<uint32_t>> befores(nodes.size());
    return std::make_shared<const SimProgram>(testing_sim::ProgramOf(std::move(nodes), befores));
  };
  SimWorkload workload;
  for (int64_t rank = 0; rank < machine.npus(); ++rank) {
    std::vector<SimNode> nodes;
    const NodeKind kind = rank == 0 ? NodeKind::kSend : NodeKind::kRecv;
    if (rank == 0 || rank == to) nodes.push_back({.kind = kind, .peer = 0, .bytes = 32768});
    workload.ranks.push_back(
        {.program = program(std::move(nodes)), .groups = {}, .peers = {rank == 0 ? to : 0}});
  }
  return Simulate(machine, workload).value().OfRank(to).end;
}

// From 0 to 2 through 1: 1,220.70 ns at half of the bandwidth, plus 75 ns.
TEST(LinkFaults, OnTheWayAroundARing) {
  const SimMachine machine = FaultyRing(NetworkShape::kRing, false, "1-2:0.5+75ns");
  EXPECT_EQ(TimeOfMessage(machine, 2), 2 * 500 + 75 + 1220);
  EXPECT_EQ(TimeOfMessage(machine, 1), 500 + 610);
  EXPECT_EQ(TimeOfMessage(machine, 3), 500 + 610);
  const SimMachine around = FaultyRing(NetworkShape::kRing, false, "0-3:0.5");
  EXPECT_EQ(TimeOfMessage(around, 3), 500 + 1220);
}

// Whole messages, link by link.
TEST(LinkFaults, OfLinksWithQueues) {
  const SimMachine machine = FaultyRing(NetworkShape::kRing, true, "1-2:0.5+75ns");
  EXPECT_EQ(TimeOfMessage(machine, 2), 500 + 610 + 500 + 75 + 1220);
  EXPECT_EQ(TimeOfMessage(machine, 3), 500 + 610);
}

TEST(LinkFaults, AllLinksOfAnNpu) {
  const SimMachine machine = FaultyRing(NetworkShape::kSwitch, false, "3@0:0.5");
  EXPECT_EQ(TimeOfMessage(machine, 3), 2 * 500 + 1220);
  EXPECT_EQ(TimeOfMessage(machine, 2), 2 * 500 + 610);
  const SimMachine pairs = FaultyRing(NetworkShape::kFullyConnected, false, "3@0:0.5 0-2:0.25");
  EXPECT_EQ(TimeOfMessage(pairs, 3), 500 + 1220);
  EXPECT_EQ(TimeOfMessage(pairs, 2), 500 + 2441);
  EXPECT_EQ(TimeOfMessage(pairs, 1), 500 + 610);
}

// Rank 1 computes 1.5 times as long.
TEST(LinkFaults, Stragglers) {
  SimMachine machine = FaultyRing(NetworkShape::kRing, false, "none");
  ASSERT_TRUE(AddStragglers("1:1.5", machine));
  const auto program =
      std::make_shared<const SimProgram>(testing_sim::ProgramOf({{.duration = 1001}}, {{}}));
  const SimRank rank{.program = program, .groups = {}, .peers = {}};
  const SimWorkload workload{.ranks = std::vector<SimRank>(4, rank)};
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(result.ranks.size(), 2u);
  EXPECT_EQ(result.OfRank(0).end, 1001);
  EXPECT_EQ(result.OfRank(1).end, 1501);
}

TEST(LinkFaults, WhatCannotBe) {
  SimMachine machine = FaultyRing(NetworkShape::kRing, false, "none");
  for (const char* text : {"3", "3:", "-1:2", "3:0", "x:2", "3:2x", "1:2 1:3"}) {
    EXPECT_FALSE(AddStragglers(text, machine)) << text;
    machine.stragglers.clear();
  }
  for (const char* text : {"0-1", "0:0.5", "0-1:0", "0-1:2", "0-1:0.5+x", "0-1:0.5+3", "0@x:0.5"}) {
    EXPECT_FALSE(AddSlowLinks(text, machine)) << text;
  }
  EXPECT_TRUE(machine.slow_links.empty());
  const auto checked = [&](const char* links, NetworkShape shape) {
    const Status status = CheckFaults(FaultyRing(shape, false, links));
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(checked("0-1:0.5", NetworkShape::kRing), "");
  EXPECT_EQ(checked("0-2:0.5", NetworkShape::kFullyConnected), "");
  EXPECT_EQ(checked("0-4:0.5", NetworkShape::kRing),
            "slow link: found NPU 4, expected NPUs below 4");
  EXPECT_NE(checked("0-2:0.5", NetworkShape::kRing), "");
  EXPECT_NE(checked("0-1:0.5", NetworkShape::kSwitch), "");
  EXPECT_EQ(checked("0@1:0.5", NetworkShape::kRing), "slow link 0@1: expected a dimension below 1");
  machine.stragglers[4] = 2;
  EXPECT_FALSE(CheckFaults(machine));
}

}  // namespace
}  // namespace etude

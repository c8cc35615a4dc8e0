#include "src/sim/result/energy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/energy_file.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

// Two ranks at a switch: rank 0 computes 1 ms and rank 1 3 ms, then an all-reduce.
struct EnergyCase {
  SimMachine machine;
  SimResult result;
  SimAccount account;

  explicit EnergyCase(NetworkShape shape = NetworkShape::kSwitch) {
    machine = MachineOf({{.shape = shape, .npus = 2, .bandwidth = 1, .latency = 0}},
                        CollectiveAlgorithm::kRing);
    machine.system.splits = 1;
    machine.system.endpoint_delay = 0;
    machine.system.memory_bandwidth = 0;
    SimWorkload workload;
    for (const int64_t duration : {1'000'000, 3'000'000}) {
      workload.ranks.push_back(RankOf(
          ProgramOf({{.duration = duration}, CollectiveNode(CollectiveType::kAllReduce, 2 << 20)},
                    {{}, {0}})));
    }
    result = Simulate(machine, workload).value();
    account = AccountOf(workload, result, Arrivals(machine, workload, result));
  }
};

TEST(Energy, PartsAreTimesTheirPower) {
  const EnergyCase one;
  // Each rank sends two messages of 1 MiB at 1 GiB/s, 976,562 ns each. Rank 1 sends both at once,
  // when it begins; rank 0 its second one after rank 1's. Both communicate from then on.
  ASSERT_EQ(one.account.step, 3'000'000 + 2 * 976'562);
  const EnergyFigures figures{.device = "",
                              .idle = 100,
                              .compute = 600,
                              .communication = 250,
                              .host = 1000,
                              .ranks_per_host = 2,
                              .per_byte = {2e-9}};
  const StepEnergy energy = EnergyOf(figures, one.machine, one.result, one.account).value();
  EXPECT_NEAR(*energy.devices.idle, 2 * 100 * 4.953124e-3, 1e-9);
  EXPECT_NEAR(*energy.devices.compute, (600 - 100) * 4e-3, 1e-9);
  EXPECT_NEAR(*energy.devices.communication, (250 - 100) * 3 * 0.976562e-3, 1e-9);
  EXPECT_NEAR(*energy.hosts, 1000 * 4.953124e-3, 1e-9);
  // Four messages of 1 MiB, over two links each.
  EXPECT_NEAR(*energy.network, 4 * 2 * 1048576 * 2e-9, 1e-12);
  EXPECT_NEAR(*energy.total(), 0.9906248 + 2 + 0.4394529 + 4.953124 + 0.016777216, 1e-9);
  EXPECT_TRUE(energy.notes.empty());
  ASSERT_EQ(energy.classes.size(), 2U);
  EXPECT_NEAR(*energy.classes[1].total(), 0.4953124 + 500 * 3e-3 + 0.2929686, 1e-9);
}

TEST(Energy, LinksAreThoseOnTheWay) {
  const EnergyCase direct(NetworkShape::kRing);
  const EnergyFigures figures{
      .idle = 1, .compute = 1, .communication = 1, .host = {}, .per_byte = {1}};
  EXPECT_EQ(*EnergyOf(figures, direct.machine, direct.result, direct.account)->network,
            4 * 1048576);
}

TEST(Energy, MissingFiguresAreUnknown) {
  const EnergyCase one;
  const auto of = [&](const EnergyFigures& figures) {
    return EnergyOf(figures, one.machine, one.result, one.account).value();
  };
  EnergyFigures figures;
  figures.idle = 100;
  figures.compute = 600;
  const StepEnergy some = of(figures);
  EXPECT_TRUE(some.devices.idle && some.devices.compute);
  EXPECT_FALSE(some.devices.communication || some.total());
  EXPECT_EQ(some.notes, (std::vector<std::string>{
                            "energy: unknown in total, [device] lacks communication_watts",
                            "energy: hosts are not counted, missing [host]",
                            "energy: links are not counted, missing [network]"}));
  figures = {};
  figures.compute = 600;
  EXPECT_EQ(of(figures).notes[0],
            "energy: unknown in total, [device] lacks idle_watts, communication_watts");
  figures.per_byte = {1, 2};
  const auto wrong = EnergyOf(figures, one.machine, one.result, one.account);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "joules_per_byte: found 2 numbers, expected one, or 1 (one per dimension of the "
            "network)");
}

TEST(Energy, WhatDoesNotHappenTakesNone) {
  EnergyCase one;
  for (SimClassAccount& some : one.account.classes) some.times.communication = 0;
  EnergyFigures figures;
  figures.idle = 100;
  figures.compute = 600;
  const auto energy = EnergyOf(figures, one.machine, one.result, one.account);
  EXPECT_EQ(*energy->devices.communication, 0);
  EXPECT_TRUE(energy->total());
}

std::string EnergyError(const std::string& text) {
  const auto figures = ParseEnergyFigures("model = 'energy-1'\n" + text, "e.toml");
  return figures ? "" : figures.error().message;
}

TEST(EnergyFile, IsRead) {
  const auto figures = ParseEnergyFigures(
      "model = 'energy-1'\n[device]\nname = 'x'\nidle_watts = 90\ncompute_watts = 650.5\n"
      "[host]\nwatts = 800\nranks = 8\n[network]\njoules_per_byte = [1e-11, 2]\n",
      "e.toml");
  ASSERT_TRUE(figures) << figures.error().message;
  EXPECT_EQ(figures->device, "x");
  EXPECT_EQ(figures->idle, 90);
  EXPECT_EQ(figures->compute, 650.5);
  EXPECT_EQ(figures->communication, std::nullopt);
  EXPECT_EQ(figures->host, 800);
  EXPECT_EQ(figures->ranks_per_host, 8);
  EXPECT_EQ(figures->per_byte, (std::vector<double>{1e-11, 2}));
  const EnergyCase one;
  EXPECT_EQ(EnergyOf(*figures, one.machine, one.result, one.account).error().message,
            "e.toml:10:19: joules_per_byte: found 2 numbers, expected one, or 1 (one per dimension "
            "of the network)");
}

TEST(EnergyFile, ErrorsHaveTheirPlace) {
  EXPECT_EQ(EnergyError("[device]\nidle_watts = -1\n"),
            "e.toml:3:14: idle_watts: found -1, expected 0 to 1000000000");
  EXPECT_EQ(EnergyError("[device]\nidle_watts = 90\ncompute_watts = 50\n"),
            "e.toml:4:17: compute_watts: found 50, expected idle_watts (90) or more");
  EXPECT_EQ(EnergyError("[device]\n[host]\nwatts = 1\n"), "e.toml:3:1: [host]: missing 'ranks'");
  EXPECT_EQ(EnergyError("[device]\n[network]\n"),
            "e.toml:3:1: [network]: missing 'joules_per_byte'");
  EXPECT_EQ(EnergyError("[device]\n[network]\njoules_per_byte = []\n"),
            "e.toml:4:19: joules_per_byte: found an empty list, expected a number per dimension");
  EXPECT_EQ(EnergyError(""), "e.toml:1:1: missing table [device]");
}

}  // namespace
}  // namespace etude

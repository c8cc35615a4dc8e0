#include "src/jobs/edits/comm_edits.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/testing/sim_testing.h"
#include "src/transform/astra_sim/for_astra_sim.h"
#include "src/transform/runnable/reducing_ranks_testing.h"

namespace etude {
namespace {

// Returns the time of a step of ranks that reduce `bytes`, in the given form, on a network.
int64_t TimeOfReduction(int64_t ranks, int64_t bytes, const std::string& form,
                        std::vector<NetworkDim> network) {
  std::vector<RunnableRank> made = testing_runnable::Reducing(ranks, bytes);
  CommEdits edits = CommEdits::Make({.all_reduce = form}).value();
  EXPECT_TRUE(edits.EditRanks(made, ranks));
  RunnableJob job = MakeRunnableJob(std::move(made), {.ranks = ranks}).value();
  const AstraJob graphs = ForAstraSim(std::move(job), {.all_types = true}).value();
  SimWorkload workload{.ranks = {}, .groups = graphs.groups};
  for (const Trace& trace : graphs.traces) workload.ranks.push_back(MakeSimRank(trace).value());
  SimMachine machine = testing_sim::MachineOf(std::move(network), CollectiveAlgorithm::kRing);
  machine.system.splits = 1;
  machine.system.bandwidth_aware = true;
  machine.system.memory_bandwidth = 1'000'000;  // no time for local copies
  return Simulate(machine, workload).value().time;
}

// Max time of the simulator for the begin of a further collective and for copies, ns.
constexpr int64_t kMostOverhead = 200;

NetworkDim RingOf(int64_t npus, double bandwidth) {
  return {.shape = NetworkShape::kRing, .npus = npus, .bandwidth = bandwidth, .latency = 500};
}

TEST(CommEdits, AScatterAndAGatherTakeTheTimeOfAnAllReduceOnARing) {
  const std::string scattered = "reduce-scatter+all-gather";
  // 4 ranks reduce 1 MiB over links of 1 GiB/s between two computations of 5 us: 6 steps of a
  // quarter, and 500 ns each.
  const double steps = 6 * (1e9 / 4096 + 500) + 10'000;
  EXPECT_NEAR(static_cast<double>(TimeOfReduction(4, 1 << 20, "", {RingOf(4, 1)})), steps,
              kMostOverhead);
  EXPECT_NEAR(static_cast<double>(TimeOfReduction(4, 1 << 20, scattered, {RingOf(4, 1)})), steps,
              kMostOverhead);
  rc::check("on rings of any size and speed", [&] {
    const auto ranks = *rc::gen::inRange<int64_t>(2, 10);
    const int64_t bytes = *rc::gen::inRange<int64_t>(1, 1000) * ranks * ranks * 64;
    const auto bandwidth = static_cast<double>(*rc::gen::inRange(1, 100));
    const int64_t together = TimeOfReduction(ranks, bytes, "", {RingOf(ranks, bandwidth)});
    const int64_t apart = TimeOfReduction(ranks, bytes, scattered, {RingOf(ranks, bandwidth)});
    RC_ASSERT(apart >= together && apart <= together + kMostOverhead);
    const std::string all = "hierarchical:" + std::to_string(ranks);
    RC_ASSERT(TimeOfReduction(ranks, bytes, all, {RingOf(ranks, bandwidth)}) == apart);
  });
}

TEST(CommEdits, AHierarchyIsTheAllReduceOfANetworkOfItsDimensions) {
  // On two dimensions, an all-reduce is a reduce-scatter in the first one, an all-reduce in the
  // second one, and an all-gather.
  rc::check("for nodes of any size and any number", [&] {
    const auto node = *rc::gen::inRange<int64_t>(2, 6);
    const auto nodes = *rc::gen::inRange<int64_t>(2, 6);
    const int64_t bytes = *rc::gen::inRange<int64_t>(1, 100) * node * node * nodes * nodes * 1024;
    const std::vector<NetworkDim> network = {RingOf(node, 100), RingOf(nodes, 5)};
    const int64_t ranks = node * nodes;
    const std::string form = "hierarchical:" + std::to_string(node);
    const int64_t apart = TimeOfReduction(ranks, bytes, form, network);
    const int64_t together = TimeOfReduction(ranks, bytes, "", network);
    RC_LOG() << apart << " and " << together;
    RC_ASSERT(apart >= together && apart <= together + kMostOverhead);
  });
}

TEST(CommEdits, OptionsHaveForms) {
  EXPECT_FALSE(CommEdits::Make({.overlap = "half"}));
  for (const char* text : {"0.5", "x", "4,", "4,20", "4,0GB/s", "20000"}) {
    EXPECT_FALSE(CommEdits::Make({.compress = text})) << text;
  }
  EXPECT_TRUE(CommEdits::Make({.overlap = "on", .compress = "4,20GB/s"}));
}

TEST(CommEdits, WithoutAnAllReduceThereIsNothingToReplace) {
  std::vector<RunnableRank> one = testing_runnable::Reducing(1, 64);
  CommEdits edits = CommEdits::Make({.all_reduce = "reduce-scatter+all-gather"}).value();
  const Status edited = edits.EditRanks(one, 1);
  ASSERT_FALSE(edited);
  EXPECT_NE(edited.error().message.find("found no all-reduce between ranks"), std::string::npos);
}

}  // namespace
}  // namespace etude

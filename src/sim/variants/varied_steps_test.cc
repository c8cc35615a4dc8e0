#include "src/sim/variants/varied_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

constexpr int64_t kNanosOfNode = 1'000'000;

SimMachine VariedMachine(int64_t ranks) {
  SimMachine machine;
  machine.dims = {{.npus = ranks, .bandwidth = 1000, .latency = 0}};
  machine.system.algorithms[CollectiveType::kAllReduce].resize(1);
  machine.system.endpoint_delay = 0;
  return machine;
}

// Each rank computes in nodes, one after the other.
SimWorkload ComputeOnly(int64_t ranks, size_t nodes) {
  std::vector<SimNode> all(nodes, {.kind = NodeKind::kCompute, .duration = kNanosOfNode});
  std::vector<std::vector<uint32_t>> before(nodes);
  for (uint32_t i = 1; i < nodes; ++i) before[i] = {i - 1};
  SimWorkload workload;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    workload.ranks.push_back(RankOf(ProgramOf(all, before)));
  }
  return workload;
}

double MeanOfSteps(const std::vector<int64_t>& steps) {
  return static_cast<double>(std::accumulate(steps.begin(), steps.end(), int64_t{0})) /
         static_cast<double>(steps.size());
}

TEST(VariedSteps, NoiseHasTheMeanAndDeviation) {
  constexpr size_t kNodes = 400;
  const auto steps = SimulateVaried(VariedMachine(1), ComputeOnly(1, kNodes),
                                    {.noise = 0.2, .runs = 200, .seed = 3}, {});
  ASSERT_TRUE(steps) << steps.error().message;
  const double mean = MeanOfSteps(*steps);
  EXPECT_NEAR(mean / (kNodes * kNanosOfNode), 1, 0.005);
  double square = 0;
  for (const int64_t step : *steps) square += std::pow(static_cast<double>(step) - mean, 2);
  // The sum of 400 independent times varies by a 20th of 20 %.
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(steps->size())) / mean, 0.01, 0.002);
}

TEST(VariedSteps, TheSlowestRankDecides) {
  // Sixteen ranks of one node each: the step is the largest of 16 factors, not their mean.
  SimWorkload workload = ComputeOnly(16, 1);
  const auto steps =
      SimulateVaried(VariedMachine(16), workload, {.noise = 0.1, .runs = 100, .seed = 1}, {});
  ASSERT_TRUE(steps);
  // The expected largest of 16 normal numbers is 1.77 deviations above the mean.
  EXPECT_NEAR(MeanOfSteps(*steps) / kNanosOfNode, std::exp(1.77 * 0.0998 - 0.005), 0.02);
}

TEST(VariedSteps, RanksAreSlowWithTheirProbability) {
  const auto steps = SimulateVaried(VariedMachine(4), ComputeOnly(4, 1),
                                    {.slow_share = 0.1, .slow_factor = 3, .runs = 400}, {});
  ASSERT_TRUE(steps);
  const auto slow = std::ranges::count(*steps, 3 * kNanosOfNode);
  EXPECT_EQ(slow + std::ranges::count(*steps, kNanosOfNode), 400);
  // 1 - 0.9^4 = 34 %.
  EXPECT_NEAR(static_cast<double>(slow) / 400, 0.344, 0.07);
}

TEST(VariedSteps, ASeedRepeats) {
  const SimMachine machine = VariedMachine(2);
  const SimWorkload workload = ComputeOnly(2, 3);
  const auto steps = [&](uint64_t seed) {
    return *SimulateVaried(machine, workload, {.noise = 0.3, .runs = 5, .seed = seed}, {});
  };
  EXPECT_EQ(steps(1), steps(1));
  EXPECT_NE(steps(1), steps(2));
}

}  // namespace
}  // namespace etude

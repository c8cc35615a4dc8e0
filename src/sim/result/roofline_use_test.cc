#include "src/sim/result/roofline_use.h"

#include <gtest/gtest.h>

#include <memory>

#include "src/sim/testing/random_simulation_testing.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

// 1 GB/s and 1 TFLOPS: 4,000,000 operations on 1,000 bytes take 4,000 ns, at the peak and a quarter
// of the memory bandwidth; 1,000,000 on 4,000 bytes take 4,000 ns at a quarter of the peak. Host
// computations are excluded.
TEST(RooflineUse, AveragesByTime) {
  SimMachine machine;
  machine.dims = {{.npus = 2, .bandwidth = 50, .latency = 500}};
  machine.system.roofline = true;
  machine.system.memory_bandwidth = 1;
  machine.system.peak = 1;
  const SimRank rank{.program = std::make_shared<const SimProgram>(testing_sim::ProgramOf(
                         {{.flops = 4'000'000, .bytes = 1000},
                          {.flops = 1'000'000, .bytes = 4000},
                          {.on_host = true, .duration = 9000, .flops = 1, .bytes = 1}},
                         {{}, {0}, {}})),
                     .groups = {},
                     .peers = {}};
  const SimWorkload workload{.ranks = {rank, rank}};
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(result.OfRank(0).device, 8000);
  const RooflineUse use = RooflineUseOf(machine, workload, result, 0);
  EXPECT_DOUBLE_EQ(use.compute_bound, 4000.0 / 8001);
  EXPECT_DOUBLE_EQ(use.compute, (4000.0 + 1000) / 8001);
  EXPECT_DOUBLE_EQ(use.memory, (1000.0 + 4000) / 8001);
  EXPECT_DOUBLE_EQ(use.intensity, (4000.0 * 4000 + 4000 * 250) / 8001);

  // Half as fast.
  machine.stragglers[1] = 2;
  const SimResult slow = Simulate(machine, workload).value();
  EXPECT_EQ(slow.OfRank(1).device, 16000);
  EXPECT_DOUBLE_EQ(RooflineUseOf(machine, workload, slow, 1).compute, (8000.0 + 2000) / 2 / 16001);

  machine.system.roofline = false;
  EXPECT_EQ(RooflineUseOf(machine, workload, result, 0).intensity, 0);
}

}  // namespace
}  // namespace etude

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/result/account.h"
#include "src/sim/result/diagnosis.h"
#include "src/sim/testing/random_simulation_testing.h"

namespace etude {
namespace {

using Figures = std::array<int64_t, 10>;
Figures FiguresOf(const SimTimes& times) {
  return {times.compute,   times.communication,  times.memory,
          times.host,      times.late_wait,      times.exposed_communication,
          times.host_wait, times.exposed_memory, times.other_wait,
          times.early};
}

using CollectiveFigures = std::map<std::tuple<CollectiveType, int64_t, int64_t, uint32_t, bool>,
                                   std::tuple<uint64_t, uint64_t, int64_t, int64_t>>;
CollectiveFigures FiguresOf(const std::vector<SimCollectiveAccount>& collectives) {
  CollectiveFigures figures;
  for (const SimCollectiveAccount& one : collectives) {
    figures[{one.type, one.bytes, one.members, one.dims, one.in_group}] = {
        one.count, one.unfinished, one.time, one.skew};
  }
  return figures;
}

// Parts add up to the step, ranks have the figures of their class, and each deadlock has a
// diagnosis.
TEST(AccountRandom, PartsAddUpAndClassesCountAsTheirRanks) {
  uint64_t by_class = 0;
  uint64_t stuck = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const RandomSimulation random(seed);
    const auto whole = Simulate(random.machine, random.workload, {.by_class = false});
    const auto classes = Simulate(random.machine, random.workload);
    if (!whole || !classes) continue;
    const Arrivals of_ranks(random.machine, random.workload, *whole);
    const Arrivals of_classes(random.machine, random.workload, *classes);
    const SimAccount each = AccountOf(random.workload, *whole, of_ranks);
    const SimAccount few = AccountOf(random.workload, *classes, of_classes);
    by_class += few.classes.size() < each.classes.size() ? 1 : 0;
    ASSERT_EQ(each.step, few.step) << seed;
    for (size_t rank = 0; rank < whole->class_of.size(); ++rank) {
      const SimTimes& times = each.classes[whole->class_of[rank]].times;
      ASSERT_EQ(times.compute + times.exposed_communication + times.exposed_memory + times.idle(),
                each.step)
          << seed;
      ASSERT_GE(times.other_wait, 0) << seed;
      ASSERT_EQ(FiguresOf(times), FiguresOf(few.classes[classes->class_of[rank]].times))
          << seed << ", rank " << rank;
    }
    ASSERT_EQ(FiguresOf(each.collectives), FiguresOf(few.collectives)) << seed;
    const auto diagnosis = Diagnose(random.workload, *whole, of_ranks);
    if (!diagnosis) continue;
    ++stuck;
    for (const SimWait& wait : diagnosis->chain) ASSERT_TRUE(wait.node) << seed;
  }
  EXPECT_GT(by_class, 5u);
  EXPECT_GT(stuck, 2u);
}

}  // namespace
}  // namespace etude

#include "src/analysis/compare/machine_noise.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(MachineNoise, SpreadIsFromTheTenthToTheNinetiethPercent) {
  std::vector<Nanos> times;
  for (int i = 10; i >= 0; --i) times.push_back(Nanos{100 + 10 * i});
  const Spread spread = SpreadOf(times);
  EXPECT_EQ(spread.p10, Nanos{110});
  EXPECT_EQ(spread.median, Nanos{150});
  EXPECT_EQ(spread.p90, Nanos{190});
  EXPECT_DOUBLE_EQ(spread.share(), 190.0 / 110 - 1);
}

TEST(MachineNoise, NothingHasNoSpread) {
  EXPECT_EQ(SpreadOf({}).share(), 0);
  EXPECT_EQ(SpreadOf({Nanos{0}, Nanos{5}}).share(), 0);
  EXPECT_EQ(SpreadOf({Nanos{0}, Nanos{0}}).share(), 0);
}

}  // namespace
}  // namespace etude

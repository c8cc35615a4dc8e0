#include "src/replay/step_mix.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(CombineKinds, GapsAreMeansAndMemoryIsTheMost) {
  ReplayReport often;
  often.gaps = Nanos{100};
  often.gap_idle = Nanos{40};
  often.gap_waits = Nanos{20};
  often.copied_bytes = 10;
  ReplayReport seldom;
  seldom.gaps = Nanos{500};
  seldom.gap_idle = Nanos{80};
  seldom.gap_waits = Nanos{60};
  seldom.copied_bytes = 30;
  const ReplayReport all =
      CombineKinds({{.step = 0, .steps = 3, .recorded = Nanos{3000}, .report = often},
                    {.step = 3, .steps = 1, .recorded = Nanos{900}, .report = seldom}});
  EXPECT_EQ(all.gaps, Nanos{200});
  EXPECT_EQ(all.gap_idle, Nanos{50});
  EXPECT_EQ(all.gap_waits, Nanos{30});
  EXPECT_EQ(all.copied_bytes, 30);
}

TEST(CombineKinds, ProgramsStepsWeighTimes) {
  ReplayReport often;
  often.gaps = Nanos{100};
  often.operators = 5;
  ReplayReport seldom;
  seldom.gaps = Nanos{500};
  seldom.operators = 7;
  const ReplayReport all = CombineKinds(
      {{.step = 0, .steps = 3, .recorded = Nanos{300}, .weight = 1, .report = often},
       {.step = 3, .steps = 1, .recorded = Nanos{300}, .weight = 3, .report = seldom}});
  EXPECT_EQ(all.gaps, Nanos{400});
  EXPECT_EQ(all.operators, 3 * 5 + 7) << "of all recorded steps";
  ASSERT_EQ(all.kinds.size(), 2u);
  EXPECT_EQ(all.kinds[0].step, 3) << "the most time first";
  EXPECT_DOUBLE_EQ(all.kinds[0].step_share, 0.75);
  EXPECT_DOUBLE_EQ(*all.kinds[0].time_share, 0.9);
}

TEST(CombineKinds, DeviceWorkAndEmulatedCommunicationsAreOfAllSteps) {
  ReplayReport often;
  often.device_time = Nanos{100};
  often.device_coverage = 1;
  often.gap_scale = 0.8;
  often.emulated = 2;
  ReplayReport seldom;
  seldom.device_time = Nanos{300};
  seldom.device_coverage = 0.5;
  seldom.gap_scale = 0.4;
  seldom.emulated = 5;
  std::vector<ReplayedKind> kinds = {
      {.step = 0, .steps = 3, .recorded = Nanos{3000}, .report = often},
      {.step = 3, .steps = 1, .recorded = Nanos{900}, .report = seldom}};
  const ReplayReport all = CombineKinds(kinds);
  EXPECT_EQ(all.device_time, Nanos{150});
  ASSERT_TRUE(all.device_coverage);
  EXPECT_DOUBLE_EQ(*all.device_coverage, (300 + 150) / 600.0);
  EXPECT_DOUBLE_EQ(all.gap_scale, 0.7);
  EXPECT_EQ(all.emulated, 11);
  kinds[1].report.device_coverage.reset();
  EXPECT_EQ(CombineKinds(kinds).device_coverage, std::nullopt);
}

}  // namespace
}  // namespace etude

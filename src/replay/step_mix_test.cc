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

}  // namespace
}  // namespace etude

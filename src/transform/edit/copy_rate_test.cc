#include "src/transform/edit/copy_rate.h"

#include <gtest/gtest.h>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

TEST(CopyRate, TakesAFixedTimeAndOneByByte) {
  const CopyRate rate{.fixed = Nanos{2000}, .nanos_per_byte = 0.5};
  EXPECT_EQ(rate.TimeOf(0), Nanos{2000});
  EXPECT_EQ(rate.TimeOf(1000), Nanos{2500});
}

TEST(CopyRate, IsUnknownWithoutOperatorsOfKnownSize) {
  const Trace trace = testing_support::PlantedTrace().Operator("aten::add", 1, 0, 2).Read();
  EXPECT_FALSE(FindCopyRate(trace).has_value());
}

}  // namespace
}  // namespace etude

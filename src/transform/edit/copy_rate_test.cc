#include "src/transform/edit/copy_rate.h"

#include <gtest/gtest.h>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

constexpr const char* kLarge =
    R"("Input Dims":[[65536],[65536]],"Input type":["float","float"],"Input Strides":[[1],[1]])";
constexpr const char* kSmall =
    R"("Input Dims":[[8],[8]],"Input type":["float","float"],"Input Strides":[[1],[1]])";

// Two inputs and an output of 256 KiB each in 393 µs: half a nanosecond per byte.
TEST(CopyRate, IsThatOfElementWiseOperators) {
  const Trace trace = testing_support::PlantedTrace()
                          .Operator("aten::add", 1, 0, 393, kLarge)
                          .Operator("aten::add", 1, 400, 402, kSmall)
                          .Operator("aten::mm", 1, 500, 9000, kLarge)
                          .Read();
  const auto rate = FindCopyRate(trace);
  ASSERT_TRUE(rate.has_value());
  EXPECT_EQ(rate->fixed, Nanos{2000});
  EXPECT_NEAR(rate->nanos_per_byte, 0.5, 0.001);
  EXPECT_NEAR(static_cast<double>(rate->TimeOf(1000).count), 2500, 2);
}

TEST(CopyRate, IsUnknownWithoutLargeOperators) {
  const Trace trace = testing_support::PlantedTrace().Operator("aten::add", 1, 0, 2, kSmall).Read();
  EXPECT_FALSE(FindCopyRate(trace).has_value());
}

}  // namespace
}  // namespace etude

#include "src/transform/edit/time_scale.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

constexpr ScaledOperator kProduct{.name = "aten::mm.out"};
constexpr ScaledOperator kAdd{.name = "aten::add.Tensor"};
constexpr ScaledOperator kReduction{.name = "c10d::allreduce_", .communicates = true};

std::string ScaleError(std::string_view text) {
  const auto scale = TimeScale::Parse(text);
  return scale ? "none" : scale.error().message;
}

TEST(TimeScale, TheLastRuleThatMeansAnOperatorHolds) {
  const TimeScale scale = TimeScale::Parse("compute=2,matrix=0.5,aten::add=3,comm=4").value();
  EXPECT_EQ(scale.Of(kProduct, 0), 0.5);
  EXPECT_EQ(scale.Of(kAdd, 0), 3);
  EXPECT_EQ(scale.Of({.name = "aten::mul.Tensor"}, 0), 2);
  EXPECT_EQ(scale.Of(kReduction, 0), 4);
  EXPECT_EQ(scale.OfHost(0), 1);
  EXPECT_EQ(scale.OfCommunication(), 4);
  EXPECT_EQ(TimeScale::Parse("aten::mm=3,compute=2").value().Of(kProduct, 0), 2);
  EXPECT_EQ(TimeScale::Parse("aten::mm.out=3").value().Of(kProduct, 0), 3);
  const std::vector<ScaledOperator> step = {kProduct, kAdd, kReduction};
  EXPECT_EQ(scale.Text(step), "compute × 2, matrix × 0.5, aten::add × 3, comm × 4");
}

TEST(TimeScale, EverythingRunsSlowerWhereSomethingIsToBeFaster) {
  EXPECT_EQ(TimeScale::Parse("compute=2").value().slowdown(), 1);
  EXPECT_EQ(TimeScale::Parse("compute=0.5,comm=0.25").value().slowdown(), 4);
  EXPECT_EQ(TimeScale::Parse("").value().slowdown(), 1);
}

TEST(TimeScale, AStragglerIsSlowerButForCommunication) {
  TimeScale scale = TimeScale::Parse("compute=2").value();
  ASSERT_TRUE(scale.AddStraggler("1:1.5"));
  EXPECT_EQ(scale.Of(kAdd, 0), 2);
  EXPECT_EQ(scale.Of(kAdd, 1), 3);
  EXPECT_EQ(scale.OfHost(1), 1.5);
  EXPECT_EQ(scale.Of(kReduction, 1), 1);
  EXPECT_EQ(scale.AddStraggler("1:3").error().message, "found rank 1 twice");
  EXPECT_FALSE(scale.AddStraggler("2:0.5"));
  EXPECT_FALSE(scale.AddStraggler("-1:2"));
  EXPECT_FALSE(scale.AddStraggler("2=2"));
  EXPECT_FALSE(scale.AddStraggler("1"));
}

TEST(TimeScale, SaysWhatNothingIsMeantBy) {
  TimeScale scale = TimeScale::Parse("host=2,comm=2,aten::nomm=3").value();
  ASSERT_TRUE(scale.AddStraggler("0:2"));
  EXPECT_EQ(
      scale.Text(std::vector<ScaledOperator>{kProduct}),
      "host × 2, comm × 2 (none in this step), aten::nomm × 3 (none in this step), rank 0 × 2");
}

TEST(TimeScale, WrongTextsSayWhatWasExpected) {
  EXPECT_EQ(ScaleError("comput=2"),
            "found 'comput', expected comm, compute, matrix, host, or an operator such as "
            "aten::mm; did you mean 'compute'?");
  EXPECT_EQ(ScaleError("comm=0.5,compute=fast"),
            "found 'compute=fast', expected CLASS=FACTOR such as compute=2, with a factor from "
            "0.01 to 100");
  EXPECT_NE(ScaleError("compute"), "none");
  EXPECT_NE(ScaleError("compute=0"), "none");
  EXPECT_NE(ScaleError("compute=nan"), "none");
  EXPECT_NE(ScaleError(",compute=2"), "none");
}

}  // namespace
}  // namespace etude

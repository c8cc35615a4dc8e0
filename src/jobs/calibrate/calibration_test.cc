#include "src/jobs/calibrate/calibration.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Sizes = std::vector<int64_t>;

TEST(Calibration, ParsesSizes) {
  EXPECT_EQ(*ParseSizes("8-64"), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(*ParseSizes("12-100"), (Sizes{12, 16, 32, 64, 100}));
  EXPECT_EQ(*ParseSizes("4KiB-4KiB"), (Sizes{4096}));
  EXPECT_EQ(*ParseSizes("8,4KiB,1MiB"), (Sizes{8, 4096, 1 << 20}));
  EXPECT_EQ(ParseSizes("64-8").error().message,
            "--sizes: found 64-8, expected the smaller size first");
  EXPECT_EQ(ParseSizes("8,big").error().message,
            "--sizes: found 'big', expected 1 byte to 16 GiB, such as 64KiB");
  EXPECT_FALSE(ParseSizes("0-8"));
  EXPECT_EQ(ParseSizes("1-3").error().message,
            "--sizes: found 1-3, which are all rounded up to 4 bytes, expected a larger range or a "
            "list");
  EXPECT_EQ(*ParseSizes("3-5"), (Sizes{3, 4, 5}));
  EXPECT_FALSE(ParseSizes("8,"));
}

TEST(Calibration, ParsesRanksAndKinds) {
  EXPECT_EQ(*ParseRankCounts("4,2,4"), (Sizes{2, 4}));
  EXPECT_EQ(ParseRankCounts("1").error().message, "--ranks: found '1', expected 2 to 1024");
  EXPECT_FALSE(ParseRankCounts("2,"));
  EXPECT_EQ(ParseTypes("")->kinds, CalibratedKinds());
  EXPECT_EQ(ParseTypes("")->computations.size(), kComputationTypes.size());
  EXPECT_EQ(
      *ParseTypes("message,copy,broadcast,message"),
      (CalibratedTypes{{kMessageKind, CollectiveType::kBroadcast}, {ComputationType::kCopy}}));
  EXPECT_EQ(ParseTypes("allreduce").error().message,
            "--types: unknown 'allreduce'; did you mean 'all_reduce'?");
}

TEST(Calibration, SizesOfComputations) {
  const auto sizes = [](ComputationType type, DType dtype, const Sizes& some) {
    return SizesOfComputation(type, dtype, /*on_cpu=*/true, some);
  };
  EXPECT_EQ(sizes(ComputationType::kCopy, DType::kFloat32, {7, 1, 8}), (Sizes{4, 8}));
  // 8, 12, 16, 24 and 32 rows.
  EXPECT_EQ(sizes(ComputationType::kProduct, DType::kBFloat16, {100, 2048}),
            (Sizes{128, 288, 512, 1152, 2048}));
  EXPECT_EQ(sizes(ComputationType::kProduct, DType::kFloat32, {8}), Sizes{});
}

TEST(Calibration, ChecksEverySecondMiddle) {
  const SizePlan plan = PlanSizes(CollectiveType::kAllReduce, 2, {8, 16, 32, 64, 128});
  EXPECT_EQ(plan.sizes, (Sizes{8, 16, 32, 64, 128}));
  EXPECT_EQ(plan.checks, (Sizes{12, 48}));
}

TEST(Calibration, RoundsToWholeElementsOfEachPart) {
  const SizePlan plan = PlanSizes(CollectiveType::kReduceScatter, 3, {8, 12, 16, 32, 100});
  EXPECT_EQ(plan.sizes, (Sizes{12, 24, 36, 108}));
  EXPECT_EQ(plan.checks, (Sizes{72}));
  EXPECT_EQ(PlanSizes(CollectiveType::kBarrier, 3, {8, 16}).sizes, Sizes{0});
}

TEST(Calibration, RoundsAreAveraged) {
  MeasuredSeries::Point all;
  AddRound({8, 1000, 0.25, 0.5}, 0, all);
  EXPECT_EQ(all, (MeasuredSeries::Point{8, 1000, 0.25, 0.5}));
  AddRound({8, 1200, 0.75, 0.75}, 1, all);
  EXPECT_EQ(all.time_ns, 1100);
  EXPECT_DOUBLE_EQ(all.cores, 700.0 / 1100);  // 500 and 900 ns of a core
  EXPECT_DOUBLE_EQ(all.spread, std::hypot(0.25, 0.75) / 2);
  AddRound({8, 800, 0.5, 0.25}, 2, all);
  EXPECT_EQ(all.time_ns, 1000);
  EXPECT_DOUBLE_EQ(all.cores, 1600.0 / 3000);
  EXPECT_DOUBLE_EQ(all.spread, std::hypot(0.25, 0.75, 0.5) / 3);
}

MeasuredSeries Series(double spread, double small = 0.1) {
  return {.kind = CollectiveType::kAllReduce,
          .ranks = 2,
          .points = {{8, 1000, small, 0}, {kLargeBytes, 2000, spread, 0}}};
}

MeasuredCheck Check(int64_t time_ns) {
  return {.kind = CollectiveType::kAllReduce,
          .ranks = 2,
          .points = {{(8 + kLargeBytes) / 2, time_ns, 0}}};
}

TEST(Calibration, PredictsChecks) {
  MeasuredCheck check = Check(1200);
  ASSERT_TRUE(Predict(Series(0), check));
  EXPECT_EQ(check.points[0].predicted_ns, 1500);
  EXPECT_DOUBLE_EQ(ErrorsOf(check)->median, 0.25);
  EXPECT_DOUBLE_EQ(ErrorsOf(check)->worst, 0.25);
  EXPECT_FALSE(ErrorsOf({}));
}

TEST(Calibration, FindsNoise) {
  MeasuredCheck good = Check(1500);
  MeasuredCheck bad = Check(3000);
  ASSERT_TRUE(Predict(Series(0), good));
  ASSERT_TRUE(Predict(Series(0), bad));
  EXPECT_EQ(WhyNoisy(Series(0.25), &good), "");
  EXPECT_EQ(WhyNoisy(Series(0.26), nullptr),
            "all_reduce of 2 ranks: the median spread of sizes from 64 KiB is 26.0 %, expected at "
            "most 25 %");
  EXPECT_EQ(WhyNoisy(Series(0.1, 0.4), &good),
            "all_reduce of 2 ranks: the median spread of sizes below 64 KiB is 40.0 %, expected at "
            "most 25 %");
  EXPECT_EQ(WhyNoisy(Series(0.1), &bad),
            "all_reduce of 2 ranks: the median error at sizes between those of the file is 50.0 %, "
            "expected at most 25 %");
}

TEST(Calibration, ReplacesSeries) {
  MachineFile file;
  Put(Series(0.1), Check(1), file);
  Put(Series(0.2), {}, file);
  ASSERT_EQ(file.series.size(), 1U);
  EXPECT_EQ(file.series[0], Series(0.2));
  EXPECT_TRUE(file.checks.empty());
  EXPECT_TRUE(Has(file, CollectiveType::kAllReduce, 2, {.sizes = {8, kLargeBytes}}));
  EXPECT_FALSE(Has(file, CollectiveType::kAllReduce, 2, {.sizes = {8}}));
  EXPECT_FALSE(Has(file, CollectiveType::kAllReduce, 4, {.sizes = {8, kLargeBytes}}));
}

}  // namespace
}  // namespace etude

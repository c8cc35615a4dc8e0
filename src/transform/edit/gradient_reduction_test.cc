#include "src/transform/edit/gradient_reduction.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

std::vector<RecordedGradient> Gradients(const std::vector<int64_t>& sizes, DType dtype) {
  std::vector<RecordedGradient> gradients;
  for (const int64_t size : sizes) gradients.push_back({.bytes = Bytes{size}, .dtype = dtype});
  return gradients;
}

std::vector<int64_t> SizesOf(const std::vector<GradientBucket>& buckets) {
  std::vector<int64_t> sizes;
  for (const GradientBucket& bucket : buckets) sizes.push_back(bucket.bytes.count);
  return sizes;
}

constexpr BucketSizes kSmall{.first = Bytes{10}, .other = Bytes{25}};

TEST(GradientReduction, ABucketEndsWithTheGradientThatReachesItsSize) {
  const auto gradients = Gradients({4, 4, 4, 20, 1, 30, 3}, DType::kFloat32);
  const auto buckets = BucketsOf(gradients, kSmall);
  EXPECT_EQ(SizesOf(buckets), (std::vector<int64_t>{12, 51, 3}));
  EXPECT_EQ(buckets[0].gradients, 3);
  EXPECT_EQ(buckets[0].last, 2u);
  EXPECT_EQ(buckets[1].last, 5u);
}

TEST(GradientReduction, TypesHaveBucketsOfTheirOwn) {
  auto gradients = Gradients({6}, DType::kFloat32);
  const auto half = Gradients({6, 6}, DType::kBFloat16);
  gradients.insert(gradients.begin(), half.begin(), half.end());
  const auto buckets = BucketsOf(gradients, kSmall);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].dtype, DType::kBFloat16);
  EXPECT_EQ(buckets[0].bytes, Bytes{12});
  EXPECT_EQ(buckets[1].bytes, Bytes{6}) << "the rest at the end";
}

TEST(GradientReduction, WithoutGradientsThereAreNoBuckets) {
  EXPECT_TRUE(BucketsOf({}, kSmall).empty());
}

TEST(GradientReduction, ATraceWithoutGradientsIsRefused) {
  const Trace trace = testing_support::PlantedTrace().Operator("aten::mm", 1, 0, 100).Read();
  EXPECT_TRUE(FindBackwardPasses(trace).empty());
  const auto edited = AddGradientReduction(trace, 2, {}, {});
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code, ErrorCode::kBadInput);
}

}  // namespace
}  // namespace etude

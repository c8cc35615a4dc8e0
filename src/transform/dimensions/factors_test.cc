#include "src/transform/dimensions/factors.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace etude {
namespace {

TEST(Factors, LargerOnesAreSplit) {
  Factors factors;
  const std::array all = {factors.Add(96)};
  const std::array parts = {factors.Add(3), factors.Add(4), factors.Add(8)};
  ASSERT_TRUE(factors.Unite(all, parts));
  EXPECT_EQ(factors.Expand(all), factors.Expand(parts));
  EXPECT_EQ(factors.Expand(all).size(), 3u);
  // What is united with a part is united with the part of the whole.
  const std::array other = {factors.Add(32)};
  ASSERT_TRUE(factors.Unite(other, std::span(parts).subspan(1)));
  EXPECT_EQ(factors.Expand(other), factors.Expand(std::span(parts).subspan(1)));
}

TEST(Factors, DifferentDivisionsHaveCommonParts) {
  Factors factors;
  const std::array a = {factors.Add(4), factors.Add(16)};
  const std::array b = {factors.Add(16), factors.Add(4)};
  ASSERT_TRUE(factors.Unite(a, b));
  EXPECT_EQ(factors.Expand(a), factors.Expand(b));
  EXPECT_EQ(factors.Expand(a).size(), 3u);
}

TEST(Factors, DivisionsWithoutCommonPartsAreNotUnited) {
  Factors factors;
  const std::array a = {factors.Add(4), factors.Add(6)};
  const std::array b = {factors.Add(6), factors.Add(4)};
  EXPECT_FALSE(factors.Unite(a, b));
  EXPECT_FALSE(factors.Unite(std::array{factors.Add(6)}, std::array{factors.Add(12)}));
  EXPECT_FALSE(factors.SplitAt(std::array{factors.Add(6)}, 4));
}

TEST(Factors, LimitsFollowParts) {
  Factors factors;
  const std::array whole = {factors.Add(12)};
  factors.Limit(whole, FactorLimit::kWhole, NodeId(7));
  ASSERT_TRUE(factors.SplitAt(whole, 4));
  for (const FactorId part : factors.Expand(whole)) {
    EXPECT_EQ(factors.limit(part, FactorLimit::kWhole), NodeId(7));
  }
  const std::array other = {factors.Add(4)};
  ASSERT_TRUE(factors.Unite(std::array{factors.Expand(whole).back()}, other));
  EXPECT_EQ(factors.limit(factors.Expand(other).front(), FactorLimit::kWhole), NodeId(7));
  EXPECT_FALSE(factors.limit(factors.Expand(other).front(), FactorLimit::kUnknown));
}

}  // namespace
}  // namespace etude

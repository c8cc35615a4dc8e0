#include "src/torch/random_fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "src/trace/index_statistics.h"

namespace etude {
namespace {

// Records of training depend on it.
TEST(Shuffle, GivesTheSameOrderForASeed) {
  std::vector<int64_t> items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  RandomStream random(1);
  Shuffle(std::span(items), random);
  EXPECT_EQ(items, (std::vector<int64_t>{9, 0, 1, 4, 8, 2, 3, 7, 6, 5}));
}

TEST(ZipfRanks, AreAsFrequentAsTheLawSays) {
  constexpr int kDraws = 200'000;
  constexpr uint64_t kCount = 12;
  for (const double exponent : {0.0, 0.4, 1.0, 1.0 + 1e-10, 1.7, 4.0}) {
    SCOPED_TRACE(exponent);
    double total = 0;
    for (uint64_t rank = 1; rank <= kCount; ++rank) total += std::pow(rank, -exponent);
    const ZipfRanks ranks(kCount, exponent);
    RandomStream random(7);
    std::vector<int> seen(kCount + 1);
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t rank = ranks.Next(random);
      ASSERT_GE(rank, 1u);
      ASSERT_LE(rank, kCount);
      ++seen[rank];
    }
    for (uint64_t rank = 1; rank <= kCount; ++rank) {
      const double share = std::pow(rank, -exponent) / total;
      const double deviation = std::sqrt(kDraws * share * (1 - share));
      EXPECT_NEAR(seen[rank], kDraws * share, 5 * deviation + 1) << "rank " << rank;
    }
  }
}

TEST(FillIntegers, IndicesRepeatAsTheFittedLawSays) {
  constexpr uint64_t kSpan = 50'000;
  const FillRule rule{.kind = FillRule::Kind::kIndex, .low = 100, .high = 100 + kSpan, .skew = 1.1};
  std::vector<int64_t> out(8192);
  FillIntegers(out, rule, 3);
  std::map<int64_t, uint64_t> counts;
  for (const int64_t value : out) {
    ASSERT_GE(value, rule.low);
    ASSERT_LT(value, rule.high);
    ++counts[value];
  }
  uint64_t pairs = 0;
  for (const auto& [value, count] : counts) pairs += count * (count - 1) / 2;
  const auto fitted = FitZipf(out.size(), pairs, kSpan);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(*fitted, 1.1, 0.03);
}

TEST(FillIntegers, RecordedElementsAreTakenWhereTheyFit) {
  FillRule rule{.kind = FillRule::Kind::kIndex, .low = 0, .high = 10};
  rule.recorded = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{4, 4, 9});
  std::vector<int64_t> out(3);
  FillIntegers(out, rule, 0);
  EXPECT_EQ(out, *rule.recorded);
  out.resize(64);
  FillIntegers(out, rule, 0);
  for (const int64_t value : out) EXPECT_LT(value, 10);
}

}  // namespace
}  // namespace etude

#include "src/replay/random_fill.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "src/trace/index_statistics.h"

namespace etude {
namespace {

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

#include "src/replay/values/random_fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "src/replay/values/fill_rule.h"
#include "src/trace/index_statistics.h"

namespace etude {
namespace {

// Replay times are compared across releases, so their memory must stay the same.
TEST(RandomFill, TheSameSeedGivesTheSameNumbers) {
  std::vector<float> floats(3);
  const auto expect_near = [&](const std::vector<float>& expected) {
    for (size_t i = 0; i < floats.size(); ++i) EXPECT_NEAR(floats[i], expected[i], 2e-5) << i;
  };
  FillFloats(floats, {.kind = MemoryFill::Kind::kNormal, .real = 2}, 1);
  expect_near({-0.0685347F, -2.58522F, -5.00013F});
  FillFloats(floats, {.kind = MemoryFill::Kind::kUniform}, 1);
  expect_near({0.783281F, 0.872891F, 0.985501F});
  FillFloats(floats, {.kind = MemoryFill::Kind::kConstant}, 1);
  EXPECT_EQ(floats, (std::vector<float>{1, 1, 1}));
  std::vector<int64_t> integers(4);
  FillIntegers(integers, {.kind = MemoryFill::Kind::kIndex, .high = 1000}, nullptr, 1);
  EXPECT_EQ(integers, (std::vector<int64_t>{566, 745, 971, 444}));
  FillIntegers(integers, {.kind = MemoryFill::Kind::kIndex, .real = 1.1, .high = 1000}, nullptr, 1);
  EXPECT_EQ(integers, (std::vector<int64_t>{566, 783, 94, 94}));
  std::vector<uint8_t> bytes(4);
  FillBytes(bytes, 1);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{65, 103, 94, 11}));
  FillBools(bytes, {.kind = MemoryFill::Kind::kCoin}, 1);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 1, 0, 1}));
}

TEST(FillIntegers, IndicesRepeatAsTheFittedLawSays) {
  constexpr uint64_t kSpan = 50'000;
  const MemoryFill fill{
      .kind = MemoryFill::Kind::kIndex, .real = 1.1, .low = 100, .high = 100 + kSpan};
  std::vector<int64_t> out(8192);
  FillIntegers(out, fill, nullptr, 3);
  std::map<int64_t, uint64_t> counts;
  for (const int64_t value : out) {
    ASSERT_GE(value, fill.low);
    ASSERT_LT(value, fill.high);
    ++counts[value];
  }
  uint64_t pairs = 0;
  for (const auto& [value, count] : counts) pairs += count * (count - 1) / 2;
  const auto fitted = FitZipf(out.size(), pairs, kSpan);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(*fitted, 1.1, 0.03);
}

TEST(FillIntegers, RecordedElementsAreTakenWhereTheyFit) {
  const MemoryFill fill{.kind = MemoryFill::Kind::kIndex, .low = 0, .high = 10};
  const std::vector<int64_t> recorded = {4, 4, 9};
  std::vector<int64_t> out(3);
  FillIntegers(out, fill, &recorded, 0);
  EXPECT_EQ(out, recorded);
  out.resize(64);
  FillIntegers(out, fill, &recorded, 0);
  for (const int64_t value : out) EXPECT_LT(value, 10);
}

TEST(FillIntegers, StepsAddUpToOffsets) {
  MemoryFill fill{.kind = MemoryFill::Kind::kSteps, .low = 1, .high = 1000};
  std::vector<int64_t> steps(9);
  FillIntegers(steps, fill, nullptr, 0);
  fill.kind = MemoryFill::Kind::kOffsets;
  std::vector<int64_t> offsets(9);
  FillIntegers(offsets, fill, nullptr, 0);
  std::partial_sum(steps.begin(), steps.end(), steps.begin());
  EXPECT_EQ(steps, offsets);
  EXPECT_EQ(offsets.back(), 1000) << "the end itself";
}

TEST(FillIntegers, LengthsDescendToTheirSum) {
  const MemoryFill fill{.kind = MemoryFill::Kind::kLengths, .low = 30, .high = 100};
  std::vector<int64_t> out(6);
  FillIntegers(out, fill, nullptr, 0);
  EXPECT_EQ(out, (std::vector<int64_t>{30, 14, 14, 14, 14, 14}));
}

TEST(FillBools, AMaskHasAsManyAsItSays) {
  std::vector<uint8_t> out(1000);
  FillBools(out, {.kind = MemoryFill::Kind::kMask, .high = 321}, 5);
  EXPECT_EQ(std::ranges::count(out, 1), 321);
}

TEST(FillIntegers, MasksAndDifferentNumbers) {
  std::vector<int64_t> out(100);
  FillIntegers(out, {.kind = MemoryFill::Kind::kMask, .low = 0, .high = 33}, nullptr, 5);
  EXPECT_EQ(std::ranges::count(out, 1), 33);
  EXPECT_EQ(std::ranges::count(out, 0), 67);
  FillIntegers(out, {.kind = MemoryFill::Kind::kDistinct, .low = 2, .high = 9}, nullptr, 5);
  EXPECT_TRUE(std::ranges::is_sorted(out));
  EXPECT_EQ(std::set<int64_t>(out.begin(), out.end()), (std::set<int64_t>{2, 3, 4, 5, 6, 7, 8}));
  std::vector<float> floats(10);
  FillFloats(floats, {.kind = MemoryFill::Kind::kDistinct, .low = 0, .high = 3}, 5);
  EXPECT_EQ(std::set<float>(floats.begin(), floats.end()), (std::set<float>{0, 1, 2}));
}

TEST(FillBy, TheElementDecidesWhatARuleMeans) {
  using Fill = MemoryFill::Kind;
  using Rule = FillRule::Kind;
  const auto kind = [](Rule rule, FilledElement element, int64_t elements = 12) {
    return FillBy({.kind = rule}, element, elements, {}).kind;
  };
  EXPECT_EQ(kind(Rule::kDefault, FilledElement::kFloat), Fill::kNormal);
  EXPECT_EQ(kind(Rule::kDefault, FilledElement::kFloat, 1), Fill::kConstant);
  EXPECT_EQ(kind(Rule::kPositive, FilledElement::kFloat), Fill::kUniform);
  EXPECT_EQ(kind(Rule::kDefault, FilledElement::kByte), Fill::kBytes);
  EXPECT_EQ(kind(Rule::kDefault, FilledElement::kInteger), Fill::kConstant);
  EXPECT_EQ(kind(Rule::kDefault, FilledElement::kBool), Fill::kCoin);
  EXPECT_EQ(kind(Rule::kMask, FilledElement::kBool), Fill::kMask);
  const MemoryFill index = FillBy({.kind = Rule::kIndex, .low = 2, .high = 9, .skew = 1.5},
                                  FilledElement::kInteger, 12, {});
  EXPECT_EQ(index.kind, Fill::kIndex);
  EXPECT_EQ(index.real, 1.5);
  EXPECT_EQ(index.high, 9);
  // Glorot: 2 / (fan in + fan out).
  const int64_t sizes[] = {30, 20};
  EXPECT_NEAR(FillBy({.kind = Rule::kWeight}, FilledElement::kFloat, 600, sizes).real, 0.2, 1e-6);
}

}  // namespace
}  // namespace etude

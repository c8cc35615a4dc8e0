#include "src/base/align.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <random>
#include <vector>

namespace etude {
namespace {

using Tokens = std::vector<uint32_t>;

Tokens Random(uint32_t seed, size_t size, uint32_t names) {
  std::mt19937 random(seed);
  Tokens tokens(size);
  for (uint32_t& token : tokens) token = static_cast<uint32_t>(random()) % names;
  return tokens;
}

TEST(Align, EqualSequencesPairUp) {
  const Tokens a = Random(1, 500, 20);
  const Alignment alignment = Align(a, a);
  ASSERT_EQ(alignment.pairs.size(), a.size());
  for (uint32_t i = 0; i < a.size(); ++i) EXPECT_EQ(alignment.pairs[i], std::pair(i, i));
  EXPECT_FALSE(alignment.ambiguous);
}

TEST(Align, FindsAStretchOfALongerSequence) {
  const Tokens a = Random(1, 300, 30);
  Tokens b = Random(2, 5000, 30);
  std::ranges::copy(a, b.begin() + 3000);
  const Alignment alignment = Align(a, b);
  ASSERT_EQ(alignment.pairs.size(), a.size());
  EXPECT_EQ(alignment.pairs.front(), std::pair(0u, 3000u));
  EXPECT_EQ(alignment.pairs.back(), std::pair(299u, 3299u));
  EXPECT_FALSE(alignment.ambiguous);
}

TEST(Align, SaysThatSeveralStepsWouldDoAndTakesOneAsAWhole) {
  const Tokens step = Random(1, 300, 30);
  Tokens b;
  for (int i = 0; i < 10; ++i) b.insert(b.end(), step.begin(), step.end());
  const Alignment alignment = Align(step, b);
  ASSERT_EQ(alignment.pairs.size(), step.size());
  EXPECT_TRUE(alignment.ambiguous);
  EXPECT_EQ(alignment.pairs.front().second, 0u) << "the first one";
  EXPECT_EQ(alignment.pairs.back().second, 299u);
}

TEST(Align, PrefersTheStepThatFitsBetter) {
  const Tokens step = Random(1, 300, 30);
  Tokens first = step;
  for (size_t i = 40; i < first.size(); i += 25) first[i] = 99;  // a first step is often different
  Tokens b = first;
  for (int i = 0; i < 3; ++i) b.insert(b.end(), step.begin(), step.end());
  const Alignment alignment = Align(step, b);
  ASSERT_EQ(alignment.pairs.size(), step.size());
  EXPECT_EQ(alignment.pairs.front().second, 300u);
}

TEST(Align, PassesOverWhatOneSideLacks) {
  const Tokens a = Random(1, 400, 50);
  Tokens b = a;
  b.erase(b.begin() + 100, b.begin() + 105);
  b.insert(b.begin() + 200, {60, 61, 62});
  const Alignment alignment = Align(a, b);
  EXPECT_EQ(alignment.pairs.size(), 395u);
  for (const auto& [i, j] : alignment.pairs) EXPECT_EQ(a[i], b[j]);
}

TEST(Align, FindsNothingWhereNothingIs) {
  EXPECT_TRUE(Align(Tokens{}, Tokens{1}).pairs.empty());
  EXPECT_TRUE(Align(Tokens{1, 2, 3}, Tokens{4, 5, 6}).pairs.empty());
  EXPECT_TRUE(Align(Tokens(50, 1), Tokens(5000, 1)).pairs.empty()) << "it could stand anywhere";
}

TEST(Align, GivesUpOnLongSequencesWithLittleInCommon) {
  const Alignment alignment = Align(Random(1, 20000, 3), Random(2, 20000, 3));
  for (size_t i = 1; i < alignment.pairs.size(); ++i) {
    EXPECT_LT(alignment.pairs[i - 1].second, alignment.pairs[i].second);
  }
}

RC_GTEST_PROP(Align, PairsEqualTokensInOrder, (uint32_t seed, uint8_t size_a, uint8_t size_b)) {
  const Tokens a = Random(seed, size_a, 1 + seed % 7);
  const Tokens b = Random(seed + 1, size_b, 1 + seed % 7);
  const Alignment alignment = Align(a, b);
  for (size_t i = 0; i < alignment.pairs.size(); ++i) {
    const auto [x, y] = alignment.pairs[i];
    RC_ASSERT(a.at(x) == b.at(y));
    if (i == 0) continue;
    RC_ASSERT(alignment.pairs[i - 1].first < x);
    RC_ASSERT(alignment.pairs[i - 1].second < y);
  }
}

}  // namespace
}  // namespace etude

#include "src/analysis/compare/paired_comparison.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Pairs = std::vector<FigurePair>;

// Compares the pairs of one start.
PairedComparison Compare(const Pairs& pairs, uint64_t seed = 1) {
  return ComparePairs({&pairs, 1}, seed);
}

// Returns `count` pairs with originals 1, 2, … and replays `factor` times as large.
Pairs Ladder(int count, double factor) {
  Pairs pairs;
  for (int i = 1; i <= count; ++i) pairs.push_back({1.0 * i, factor * i});
  return pairs;
}

Pairs Same(int count, double original, double replay) {
  return Pairs(static_cast<size_t>(count), {original, replay});
}

TEST(PairedComparison, NothingIsKnownWithoutPairs) {
  const PairedComparison result = ComparePairs({}, 1);
  EXPECT_EQ(result.pairs, 0u);
  EXPECT_FALSE(result.original || result.replay || result.error);
  EXPECT_EQ(Judge(result, 0.05), BarVerdict::kUndetermined);
}

TEST(PairedComparison, EqualPairsHaveNoSpread) {
  const PairedComparison result = Compare(Same(12, 200, 210));
  EXPECT_DOUBLE_EQ(result.original->value, 200);
  EXPECT_DOUBLE_EQ(result.replay->low, 210);
  EXPECT_NEAR(result.error->value, 0.05, 1e-12);
  EXPECT_DOUBLE_EQ(result.error->low, result.error->high);
}

// A resample of seven has its median at or below the k-th value if at least four of the seven draws
// are there: with probability 0.0102 for k = 1 and 0.1083 for k = 2. The 2.5 % point is the second
// value and, by symmetry, the 97.5 % point the sixth.
TEST(PairedComparison, IntervalOfSevenIsFromTheSecondToTheSixth) {
  const PairedComparison result = Compare(Ladder(7, 1));
  EXPECT_DOUBLE_EQ(result.original->value, 4);
  EXPECT_DOUBLE_EQ(result.original->low, 2);
  EXPECT_DOUBLE_EQ(result.original->high, 6);
}

// A resample of two pairs has the median 1, 2 or 3 with probability 1/4, 1/2, 1/4.
TEST(PairedComparison, MedianOfAnEvenNumberLiesBetween) {
  const PairedComparison result = Compare(Pairs{{1, 5}, {3, 5}});
  EXPECT_DOUBLE_EQ(result.original->value, 2);
  EXPECT_DOUBLE_EQ(result.original->low, 1);
  EXPECT_DOUBLE_EQ(result.original->high, 3);
  EXPECT_DOUBLE_EQ(result.error->value, 1.5);
  EXPECT_DOUBLE_EQ(result.error->low, 5.0 / 3 - 1);
  EXPECT_DOUBLE_EQ(result.error->high, 4);
}

// Pairs stay together: a machine that is slow for both sides at once does not widen the error.
TEST(PairedComparison, WhatBothSidesShareCancels) {
  const PairedComparison result = Compare(Ladder(30, 1.02));
  EXPECT_GT(result.original->high, 1.5 * result.original->low);
  EXPECT_NEAR(result.error->low, 0.02, 1e-9);
  EXPECT_NEAR(result.error->high, 0.02, 1e-9);
  EXPECT_EQ(Judge(result, 0.05), BarVerdict::kMet);
  EXPECT_EQ(Judge(result, 0.01), BarVerdict::kMissed);
}

// Each start has its own time: 100 in one and 200 in two of three. A resample of three starts has
// its median at 100 if at least two of the draws are the first: 7 of 27 times. Pairs alone, 30 of
// 100 and 60 of 200, would leave no doubt (a probability of 0.0008).
TEST(PairedComparison, StartsAreDrawnFirst) {
  const std::vector<Pairs> starts = {
      Same(30, 100, 100), Same(30, 200, 200), {}, Same(30, 200, 200)};
  const PairedComparison result = ComparePairs(starts, 1);
  EXPECT_EQ(result.pairs, 90u);
  EXPECT_DOUBLE_EQ(result.original->value, 200);
  EXPECT_DOUBLE_EQ(result.original->low, 100);
  EXPECT_DOUBLE_EQ(result.original->high, 200);
  EXPECT_DOUBLE_EQ(result.error->high, 0);
  Pairs pooled;
  for (const Pairs& start : starts) pooled.insert(pooled.end(), start.begin(), start.end());
  EXPECT_DOUBLE_EQ(Compare(pooled).original->low, 200);
}

TEST(PairedComparison, SameSeedSameInterval) {
  Pairs pairs;
  for (int i = 0; i < 31; ++i) pairs.push_back({100.0 + i * 7 % 31, 100.0 + i * 11 % 31});
  const auto a = Compare(pairs, 5), b = Compare(pairs, 5);
  EXPECT_EQ(a.error->low, b.error->low);
  EXPECT_EQ(a.error->high, b.error->high);
}

// Approximately normal: the sum of twelve uniform draws.
double Noise(std::mt19937_64& random) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return sum - 6;
}

// Sides that are equal except for noise of a tenth: of 60 intervals of 95 %, three miss the true
// error, 0, on average, and more than eight with a probability below 1 in 200.
TEST(PairedComparison, IntervalsHoldTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  int missed = 0;
  for (int run = 0; run < 60; ++run) {
    Pairs pairs;
    for (int i = 0; i < 20; ++i) {
      const double machine = std::exp(0.3 * Noise(random));
      pairs.push_back(
          {machine * std::exp(0.1 * Noise(random)), machine * std::exp(0.1 * Noise(random))});
    }
    const Estimate error = *Compare(pairs).error;
    if (error.low > 0 || error.high < 0) ++missed;
  }
  EXPECT_LE(missed, 8);
}

TEST(PairedComparison, AnOriginalOfZeroIsNotDividedBy) {
  const PairedComparison none = Compare(Same(12, 0, 0));
  EXPECT_EQ(none.error->value, 0);
  EXPECT_EQ(Judge(none, 0.15), BarVerdict::kMet);
  const PairedComparison some = Compare(Same(12, 0, 3));
  EXPECT_TRUE(std::isinf(some.error->value));
  EXPECT_EQ(Judge(some, 0.15), BarVerdict::kMissed);
}

// Half of the originals are 0: so is the median of more than 2.5 % of the resamples.
TEST(PairedComparison, AnOriginalThatMayBeZeroLeavesTheErrorOpen) {
  Pairs pairs = Same(10, 0, 4);
  for (const FigurePair& pair : Same(11, 4, 4)) pairs.push_back(pair);
  const PairedComparison result = Compare(pairs);
  EXPECT_DOUBLE_EQ(result.error->value, 0);
  EXPECT_DOUBLE_EQ(result.error->low, 0);
  EXPECT_TRUE(std::isinf(result.error->high));
  EXPECT_EQ(Judge(result, 0.15), BarVerdict::kUndetermined);
}

TEST(PairedComparison, NegativeFiguresHaveNoRelativeError) {
  Pairs pairs = Same(12, 5, 5);
  pairs[3].original = -1;
  const PairedComparison result = Compare(pairs);
  EXPECT_DOUBLE_EQ(result.original->value, 5);
  EXPECT_FALSE(result.error);
  EXPECT_EQ(Judge(result, 0.15), BarVerdict::kUndetermined);
}

TEST(PairedComparison, ManyPairsAreResampledLessOften) {
  EXPECT_EQ(ResamplesOf(0), 10'000u);
  EXPECT_EQ(ResamplesOf(1'000), 10'000u);
  EXPECT_EQ(ResamplesOf(4'000), 2'500u);
  EXPECT_EQ(ResamplesOf(100'000), 1'000u);
}

TEST(PairedComparison, VerdictNeedsTheWholeIntervalOnOneSide) {
  const auto judge = [](double low, double high) {
    PairedComparison comparison{.pairs = 30};
    comparison.error = Estimate{.value = (low + high) / 2, .low = low, .high = high};
    return Judge(comparison, 0.05);
  };
  EXPECT_EQ(judge(-0.05, 0.05), BarVerdict::kMet);
  EXPECT_EQ(judge(0.051, 0.2), BarVerdict::kMissed);
  EXPECT_EQ(judge(-0.2, -0.051), BarVerdict::kMissed);
  EXPECT_EQ(judge(0.04, 0.06), BarVerdict::kUndetermined);
  EXPECT_EQ(judge(-0.2, 0.2), BarVerdict::kUndetermined);
}

TEST(PairedComparison, FewPairsDecideNothing) {
  EXPECT_EQ(Judge(Compare(Same(9, 1, 1)), 0.05), BarVerdict::kUndetermined);
  EXPECT_EQ(Judge(Compare(Same(10, 1, 1)), 0.05), BarVerdict::kMet);
  EXPECT_EQ(Judge(Compare(Same(9, 1, 2)), 0.05), BarVerdict::kUndetermined);
}

TEST(PairedComparison, VerdictsHaveNames) {
  EXPECT_EQ(BarVerdictFromName(Name(BarVerdict::kMissed)), BarVerdict::kMissed);
  EXPECT_EQ(BarVerdictFromName("perhaps"), std::nullopt);
}

// Twice as fast there, on both sides.
TEST(CompareRatios, RatioThatIsPredicted) {
  const Pairs here = Ladder(30, 1.03);
  Pairs there = Ladder(30, 1.03);
  for (FigurePair& pair : there) pair = {pair.original / 2, pair.replay / 2};
  const PairedComparison result = CompareRatios({&here, 1}, {&there, 1}, 1);
  EXPECT_EQ(result.pairs, 30u);
  EXPECT_DOUBLE_EQ(result.original->value, 0.5);
  EXPECT_DOUBLE_EQ(result.replay->value, 0.5);
  // Medians of the two machines vary, but original and replay of each vary together.
  EXPECT_LT(result.original->low, 0.45);
  EXPECT_GT(result.original->high, 0.55);
  EXPECT_NEAR(result.error->low, 0, 1e-12);
  EXPECT_NEAR(result.error->high, 0, 1e-12);
  EXPECT_EQ(Judge(result, 0.05), BarVerdict::kMet);
}

TEST(CompareRatios, RatioThatIsNot) {
  const Pairs here = Same(12, 100, 100), there = Same(12, 50, 60);
  const PairedComparison result = CompareRatios({&here, 1}, {&there, 1}, 1);
  EXPECT_DOUBLE_EQ(result.original->value, 0.5);
  EXPECT_DOUBLE_EQ(result.replay->value, 0.6);
  EXPECT_NEAR(result.error->value, 0.2, 1e-12);
  EXPECT_EQ(Judge(result, 0.05), BarVerdict::kMissed);
}

TEST(CompareRatios, TooFewPairsOnOneMachineDecideNothing) {
  const Pairs here = Same(30, 100, 100), there = Same(9, 50, 50);
  const PairedComparison result = CompareRatios({&here, 1}, {&there, 1}, 1);
  EXPECT_EQ(result.pairs, 9u);
  EXPECT_EQ(Judge(result, 0.05), BarVerdict::kUndetermined);
}

TEST(CompareRatios, WhatGrowsFromNothingHasNoRatio) {
  const Pairs none = Same(12, 0, 0), some = Same(12, 7, 7);
  const PairedComparison still = CompareRatios({&none, 1}, {&none, 1}, 1);
  EXPECT_EQ(still.original->value, 1);
  EXPECT_EQ(still.error->value, 0);
  const PairedComparison grown = CompareRatios({&none, 1}, {&some, 1}, 1);
  EXPECT_TRUE(std::isinf(grown.original->value) && std::isinf(grown.error->value));
  EXPECT_FALSE(CompareRatios({}, {&some, 1}, 1).error);
  const Pairs negative = Same(12, -1, 1);
  EXPECT_FALSE(CompareRatios({&some, 1}, {&negative, 1}, 1).error);
}

}  // namespace
}  // namespace etude

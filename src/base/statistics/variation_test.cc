#include "src/base/statistics/variation.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Figures = std::vector<double>;

TEST(Variation, IsTheDeviationOverTheMean) {
  const auto found = VariationOf(Figures{9, 10, 11});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->count, 3U);
  EXPECT_NEAR(found->mean, 10, 1e-12);
  EXPECT_NEAR(found->coefficient, 0.1, 1e-12);
  // χ² with two degrees: −2 ln 0.05 and −2 ln 0.95.
  const double high = -2 * std::log(0.05);
  const double low = -2 * std::log(0.95);
  EXPECT_NEAR(found->low, 0.1 / std::sqrt(((high + 2) / 3 - 1) * 0.01 + high / 2), 1e-9);
  EXPECT_NEAR(found->high, 0.1 / std::sqrt(((low + 2) / 3 - 1) * 0.01 + low / 2), 1e-9);
}

// Returns `count` figures with mean 1 and a coefficient of variation.
Figures FiguresWith(size_t count, double coefficient) {
  Figures figures;
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double offset = static_cast<double>(i) - static_cast<double>(count - 1) / 2;
    figures.push_back(offset);
    squares += offset * offset;
  }
  const double scale = coefficient / std::sqrt(squares / static_cast<double>(count - 1));
  for (double& figure : figures) figure = 1 + figure * scale;
  return figures;
}

TEST(Variation, FewFiguresCannotShowLittleVariation) {
  // The largest coefficients whose upper bound is at most 2 %.
  for (const auto& [count, most] : {std::pair<size_t, double>{4, 0.0068},
                                    {5, 0.0084},
                                    {10, 0.0121},
                                    {20, 0.0145},
                                    {40, 0.0162}}) {
    EXPECT_LE(VariationOf(FiguresWith(count, most))->high, 0.02) << count;
    EXPECT_GT(VariationOf(FiguresWith(count, most + 0.0002))->high, 0.02) << count;
  }
}

TEST(Variation, BoundsHoldFor95PercentOfNormalSamples) {
  constexpr int kSamples = 20'000;
  std::mt19937_64 random(1);
  for (const size_t count : {4U, 10U, 20U}) {
    for (const double coefficient : {0.02, 0.1, 0.4}) {
      std::normal_distribution<double> normal(1, coefficient);
      int low = 0;
      int high = 0;
      int all = 0;
      for (int sample = 0; sample < kSamples; ++sample) {
        Figures figures(count);
        for (double& figure : figures) figure = normal(random);
        const auto found = VariationOf(figures);
        if (!found) continue;  // a mean of at most 0
        ++all;
        low += found->low <= coefficient ? 1 : 0;
        high += found->high >= coefficient ? 1 : 0;
      }
      EXPECT_NEAR(static_cast<double>(low) / all, 0.95, 0.007) << count << " of " << coefficient;
      EXPECT_NEAR(static_cast<double>(high) / all, 0.95, 0.007) << count << " of " << coefficient;
    }
  }
}

TEST(Variation, RoundedFiguresHaveAnUpperBound) {
  const auto found = VariationOf(Figures{2, 2, 2}, 0.5);
  EXPECT_EQ(found->coefficient, 0);
  EXPECT_EQ(found->low, 0);
  EXPECT_NEAR(found->high, VariationOf(FiguresWith(3, 0.25 / std::sqrt(12)))->high, 1e-12);
}

TEST(Variation, WideOnesHaveNoUpperBound) {
  EXPECT_TRUE(std::isinf(VariationOf(Figures{1, 5, 9})->high));
  EXPECT_FALSE(VariationOf(Figures{1}).has_value());
  EXPECT_FALSE(VariationOf(Figures{-1, 1}).has_value());
}

}  // namespace
}  // namespace etude

#include "src/suite/results/sparsity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace etude::suite {
namespace {

using Shares = SparseOptions::Shares;

int64_t Sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

TEST(WeightCounts, UniformIsTheDensityOfEachLayer) {
  const std::vector<LayerShape> layers = {{10, 10}, {20, 50}};
  EXPECT_EQ(WeightCounts(layers, 0.1, Shares::kUniform), (std::vector<int64_t>{10, 100}));
}

// Shares 20/100 and 70/1000: 0.2 ε · 100 + 0.07 ε · 1000 = 110, so ε = 110 / 90.
TEST(WeightCounts, ErByHand) {
  const std::vector<LayerShape> layers = {{10, 10}, {20, 50}};
  EXPECT_EQ(WeightCounts(layers, 0.1, Shares::kEr), (std::vector<int64_t>{24, 86}));
  EXPECT_EQ(WeightCounts(layers, 0.1, Shares::kErk), (std::vector<int64_t>{24, 86}));
}

// With the kernel's sizes: (8 + 4 + 3 + 3) / 288 and (100 + 100) / 10,000, 10 % of 10,288.
TEST(WeightCounts, ErkCountsTheKernel) {
  const std::vector<LayerShape> layers = {{8, 4, 3, 3}, {100, 100}};
  const double factor = 1029.0 / (18 + 200);
  const std::vector<int64_t> counts = WeightCounts(layers, 0.1, Shares::kErk);
  EXPECT_NEAR(static_cast<double>(counts[0]), factor * 18, 1);
  EXPECT_EQ(Sum(counts), 1029);
  // ER ignores the kernel: (8 + 4) / (8 · 4) is 19 times 200 / 10,000, so that the layer is dense.
  EXPECT_EQ(WeightCounts(layers, 0.5, Shares::kEr)[0], 288) << "dense";
}

TEST(WeightCounts, LayersThatWouldExceedOneAreDense) {
  const std::vector<LayerShape> layers = {{10, 2}, {300, 300}, {4, 4, 3, 3}};
  for (const double density : {0.01, 0.05, 0.2, 0.5, 0.9, 1.0}) {
    for (const Shares shares : {Shares::kUniform, Shares::kEr, Shares::kErk}) {
      const std::vector<int64_t> counts = WeightCounts(layers, density, shares);
      EXPECT_EQ(Sum(counts), std::llround(density * (20 + 90000 + 144)));
      EXPECT_LE(counts[0], 20);
      EXPECT_LE(counts[1], 90000);
      EXPECT_LE(counts[2], 144);
    }
  }
  EXPECT_EQ(WeightCounts(layers, 0.2, Shares::kErk)[0], 20);
}

TEST(DropFraction, FallsByHalfACosine) {
  EXPECT_DOUBLE_EQ(DropFraction(0.3, 0, 750), 0.3);
  EXPECT_DOUBLE_EQ(DropFraction(0.3, 375, 750), 0.15);
  EXPECT_NEAR(DropFraction(0.3, 750, 750), 0, 1e-15);
  EXPECT_NEAR(DropFraction(0.3, 900, 750), 0, 1e-15);
}

TEST(SparseOptions, NamesAreReadBack) {
  EXPECT_EQ(SparseMethodFromName("rigl"), SparseOptions::Method::kRigl);
  EXPECT_EQ(SparseMethodFromName("prune"), std::nullopt);
  EXPECT_EQ(SparseSharesFromName(Name(Shares::kEr)), Shares::kEr);
  EXPECT_EQ(SparseKernelsFromName("csr"), SparseOptions::Kernels::kCsr);
}

}  // namespace
}  // namespace etude::suite

#include "src/formats/pytorch_et/integer_facts.h"

#include <gtest/gtest.h>

#include <cmath>

#include <numeric>
#include <random>

#include "src/trace/index_statistics.h"

namespace etude::capture {
namespace {

template <typename T>
IntegerFacts Of(const std::vector<T>& data, std::vector<int64_t> sizes,
                std::vector<int64_t> strides, bool count = true) {
  IntegerReader reader;
  return reader.Read(data.data(), sizes, strides, count);
}

TEST(IntegerFacts, ByHand) {
  // 5 occurs three times: three pairs; 2 twice: one.
  EXPECT_EQ(Of<int64_t>({5, 2, 5, 9, 2, 5}, {6}, {1}), (IntegerFacts{.least = 2,
                                                                     .greatest = 9,
                                                                     .ascends = false,
                                                                     .sampled = 6,
                                                                     .distinct = 3,
                                                                     .equal_pairs = 4}));
  EXPECT_EQ(Of<int32_t>({-3, 0, 0, 4}, {4}, {1}), (IntegerFacts{.least = -3,
                                                                .greatest = 4,
                                                                .ascends = true,
                                                                .sampled = 4,
                                                                .distinct = 3,
                                                                .equal_pairs = 1}));
  EXPECT_EQ(Of<uint8_t>({200}, {}, {}),
            (IntegerFacts{.least = 200, .greatest = 200, .sampled = 1, .distinct = 1}));
  EXPECT_EQ(Of<int64_t>({5, 2}, {2}, {1}, /*count=*/false),
            (IntegerFacts{.least = 2, .greatest = 5, .ascends = false}));
}

TEST(IntegerFacts, InTheOrderOfTheTensor) {
  // Two rows of three, transposed: 1 4, 2 5, 3 6.
  const std::vector<int64_t> data = {1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(Of<int64_t>(data, {2, 3}, {3, 1}).ascends);
  const IntegerFacts transposed = Of<int64_t>(data, {3, 2}, {1, 3});
  EXPECT_FALSE(transposed.ascends);
  EXPECT_EQ(transposed.distinct, 6u);
  // A row that is repeated by a stride of zero.
  const IntegerFacts expanded = Of<int64_t>(data, {4, 3}, {0, 1});
  EXPECT_EQ(expanded.sampled, 12u);
  EXPECT_EQ(expanded.distinct, 3u);
  EXPECT_EQ(expanded.equal_pairs, 18u);
  EXPECT_EQ(expanded.greatest, 3);
}

TEST(IntegerFacts, AllValues) {
  IntegerReader reader;
  const std::vector<int16_t> data = {1, -2, 3, 4, 5, 6};
  const std::vector<int64_t> sizes = {3, 2};
  const std::vector<int64_t> strides = {1, 3};
  const auto values = reader.Values(data.data(), sizes, strides);
  EXPECT_EQ(std::vector<int64_t>(values.begin(), values.end()),
            (std::vector<int64_t>{1, 4, -2, 5, 3, 6}));
  const std::vector<int64_t> many(100'000, 7);
  const std::vector<int64_t> size = {100'000};
  const std::vector<int64_t> one = {1};
  EXPECT_EQ(reader.Values(many.data(), size, one).size(), 100'000u);
}

TEST(IntegerFacts, LargeTensorsAreSampled) {
  std::vector<int32_t> data(1'000'000);
  std::iota(data.begin(), data.end(), 0);
  const IntegerFacts facts = Of<int32_t>(data, {1000, 1000}, {1000, 1});
  EXPECT_EQ(facts.sampled, IntegerReader::kMostSampled);
  EXPECT_EQ(facts.distinct, IntegerReader::kMostSampled);
  EXPECT_TRUE(facts.ascends);
  EXPECT_EQ(facts.greatest, 999'999);
  data[500'001] = 0;  // found although it is hardly in the sample
  EXPECT_FALSE(Of<int32_t>(data, {1'000'000}, {1}).ascends);
}

// A period in the data must not match a period of the sample.
TEST(IntegerFacts, SamplesOfPeriodicData) {
  std::vector<int64_t> data(64 * IntegerReader::kMostSampled);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int64_t>(i % 64);
  EXPECT_EQ(Of<int64_t>(data, {static_cast<int64_t>(data.size())}, {1}).distinct, 64u);
}

TEST(IntegerFacts, ZipfIsFoundAgain) {
  constexpr size_t kValues = 5000;
  for (const double skew : {0.0, 0.6, 1.05, 1.5}) {
    std::vector<double> weights(kValues);
    for (size_t r = 0; r < kValues; ++r) weights[r] = std::pow(r + 1, -skew);
    std::mt19937_64 random(7);
    std::discrete_distribution<int64_t> draw(weights.begin(), weights.end());
    std::vector<int64_t> data(50'000);
    for (int64_t& value : data) value = draw(random);
    const IntegerFacts facts = Of<int64_t>(data, {50'000}, {1});
    const auto span = static_cast<uint64_t>(facts.greatest - facts.least) + 1;
    const auto found = FitZipf(facts.sampled, facts.equal_pairs, span);
    ASSERT_TRUE(found);
    EXPECT_NEAR(*found, skew, skew == 0 ? 0.15 : 0.05);
  }
}

}  // namespace
}  // namespace etude::capture

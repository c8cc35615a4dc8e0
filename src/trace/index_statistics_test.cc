#include "src/trace/index_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace etude {
namespace {

TEST(FitZipf, TwoValuesByHand) {
  // Two values with probabilities 1 : 2^-s, s = 1: (2/3)^2 + (1/3)^2 = 5/9 of the pairs are equal.
  // 100 elements have 4950 pairs.
  const auto skew = FitZipf(100, 2750, 2);
  ASSERT_TRUE(skew);
  EXPECT_NEAR(*skew, 1, 1e-6);
}

TEST(FitZipf, ThreeValuesByHand) {
  // s = 2: weights 1, 1/4, 1/9, their sum 49/36; squares (36^2 + 9^2 + 4^2) / 49^2 = 1393/2401.
  const auto skew = FitZipf(50, 711, 3);  // 1225 pairs, 1225 * 1393/2401 = 710.7
  ASSERT_TRUE(skew);
  EXPECT_NEAR(*skew, 2, 0.005);
}

TEST(FitZipf, ManyValuesAgreeWithSumsTermByTerm) {
  double sum = 0;
  double squares = 0;
  for (int r = 1; r <= 100000; ++r) {
    sum += std::pow(r, -1.0);
    squares += std::pow(r, -2.0);
  }
  const double pairs = 8192.0 * 8191 / 2;
  const auto skew =
      FitZipf(8192, static_cast<uint64_t>(std::lround(pairs * squares / (sum * sum))), 100000);
  ASSERT_TRUE(skew);
  EXPECT_NEAR(*skew, 1, 1e-4);
}

TEST(FitZipf, AlikeFrequentValuesHaveNone) {
  EXPECT_EQ(FitZipf(100, 495, 10), 0);  // 4950 / 10
  EXPECT_EQ(FitZipf(100, 0, 100), 0);   // a permutation: fewer equal pairs than any draw gives
}

TEST(FitZipf, UnknownWhereThereIsTooLittle) {
  EXPECT_EQ(FitZipf(0, 0, 10), std::nullopt);
  EXPECT_EQ(FitZipf(1, 0, 10), std::nullopt);
  EXPECT_EQ(FitZipf(100, 4950, 1), std::nullopt);  // one value
  EXPECT_EQ(FitZipf(100, 0, 1'000'000), std::nullopt);
  EXPECT_EQ(FitZipf(100, 15, 1'000'000), std::nullopt);
  EXPECT_TRUE(FitZipf(100, 16, 1'000'000));
}

TEST(FitZipf, StaysInItsBounds) {
  EXPECT_EQ(FitZipf(8192, uint64_t{8192} * 8191 / 2, 1000), 16);
  const auto widest = FitZipf(UINT64_MAX, UINT64_MAX, UINT64_MAX);
  ASSERT_TRUE(widest);
  EXPECT_TRUE(std::isfinite(*widest));
  const auto skew = FitZipf(8192, 16, UINT64_MAX);
  ASSERT_TRUE(skew);
  EXPECT_GT(*skew, 0);
  EXPECT_LT(*skew, 2);
}

TEST(IndexStatistics, TextAndBack) {
  const std::vector<IndexStatistics> all = {
      {.tensor = 1, .elements = 4, .distinct = 3, .equal_pairs = 1, .ascends = true},
      {.tensor = 7, .elements = 100, .distinct = 2, .equal_pairs = 2750, .skew = 1.0}};
  const std::string text = ToText(all);
  EXPECT_EQ(
      text,
      R"({"1":{"elements":4,"distinct":3,"equal_pairs":1,"ascends":true},)"
      R"("7":{"elements":100,"distinct":2,"equal_pairs":2750,"ascends":false,"skew":1.000}})");
  EXPECT_EQ(ParseIndexStatistics(text), all);
  EXPECT_EQ(ToText({}), "");
}

TEST(IndexValues, Text) {
  EXPECT_EQ(
      ParseIndexValues(R"({"1":[3,-1],"4":[]})"),
      (std::vector<IndexValues>{{.tensor = 1, .values = {3, -1}}, {.tensor = 4, .values = {}}}));
  for (const char* text : {"", "[]", "{\"x\":[]}", "{\"1\":[1.5]}", "{\"1\":3}", "{\"1\":[1"}) {
    EXPECT_EQ(ParseIndexValues(text), std::nullopt) << text;
  }
}

TEST(IndexStatistics, OtherTextIsNone) {
  for (const char* text :
       {"", "[]", "{\"a\":1}", "{\"-1\":{}}", "{\"1\":{\"elements\":-4}}",
        R"({"1":{"elements":4,"distinct":3,"equal_pairs":1,"ascends":0}})",
        R"({"1":{"elements":4,"distinct":3,"equal_pairs":1,"ascends":true,"skew":-1}})"}) {
    EXPECT_EQ(ParseIndexStatistics(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace etude

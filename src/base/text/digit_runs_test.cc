#include "src/base/text/digit_runs.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(DigitRuns, AreReplacedAsAWhole) {
  const auto in_brackets = [](std::string_view digits, std::string_view rest) {
    return "[" + std::string(digits) + (rest.empty() ? "]." : "]");
  };
  EXPECT_EQ(ReplaceDigits("a12b3", in_brackets), "a[12]b[3].");
  EXPECT_EQ(ReplaceDigits("7", in_brackets), "[7].");
  EXPECT_EQ(ReplaceDigits("ab", in_brackets), "ab");
  EXPECT_EQ(ReplaceDigits("", in_brackets), "");
}

TEST(DigitRuns, NumbersOfLayersGoAndThoseInWordsStay) {
  EXPECT_EQ(WithoutNumbers("layer12.mlp3", "#"), "layer#.mlp#");
  EXPECT_EQ(WithoutNumbers("aten::conv2d", "#"), "aten::conv2d");
  EXPECT_EQ(WithoutNumbers("h.0.conv2d_7", "*"), "h.*.conv2d_*");
}

}  // namespace
}  // namespace etude

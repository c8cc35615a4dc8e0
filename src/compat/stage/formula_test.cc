#include "src/compat/stage/formula.h"

#include <gtest/gtest.h>

#include <string>

namespace etude {
namespace {

const FormulaNames kNames = {{"L", {.over = 3}}, {"Wd", {.over = 10}}, {"half", {1, 2}}};

std::string ErrorOf(const std::string& text) {
  const auto value = EvaluateFormula(text, kNames);
  return value ? "fine" : value.error().message;
}

TEST(Formula, IsEvaluatedExactly) {
  const auto value = [](const std::string& text) { return *EvaluateFormula(text, kNames); };
  EXPECT_EQ(value("2*L*(Wd - Wd/4)"), (Fraction{45}));
  EXPECT_EQ(value("-L + 10 - 2 - 1"), (Fraction{4}));
  EXPECT_EQ(value(" 1/3 + half "), (Fraction{5, 6}));
  EXPECT_EQ(value("8/4/2*3"), (Fraction{3}));
  EXPECT_EQ(value("up(7/2) + up(4) + up(half - 1) + up(0)"), (Fraction{8}));
  EXPECT_EQ(value("[L>2]*5 + [L > 3]*7"), (Fraction{5}));
  EXPECT_EQ(value("1/(half - 1)"), (Fraction{-2}));
  // Only the result needs to fit.
  EXPECT_EQ(
      value("9000000000000000000*9000000000000000000/9000000000000000000*2/9000000000000000000"),
      (Fraction{2}));
}

TEST(Formula, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("2*X"), "formula '2*X': unknown name 'X'");
  EXPECT_EQ(ErrorOf("L/(3 - L)"), "formula 'L/(3 - L)': division by 0");
  EXPECT_EQ(ErrorOf("2*"), "formula '2*': expected a number or a name");
  EXPECT_EQ(ErrorOf("(2"), "formula '(2': expected ')'");
  EXPECT_EQ(ErrorOf("2 L"), "formula '2 L': expected an operator at 'L'");
  EXPECT_EQ(ErrorOf("2L"), "formula '2L': '2L' is no number");
  EXPECT_EQ(ErrorOf("[L]"), "formula '[L]': expected '>'");
  EXPECT_NE(ErrorOf(std::string(1000, '(')), "fine");
  EXPECT_NE(ErrorOf("9000000000000000000*9000000000000000000*9000000000000000000"), "fine");
}

TEST(Formula, FractionsAsText) {
  EXPECT_EQ(Text(Fraction{.over = 12}), "12");
  EXPECT_EQ(Text(Fraction{-7, 2}), "-7/2");
}

TEST(Formula, WholeNumbersAreWhole) {
  EXPECT_EQ(*WholeNumber({-7}), -7);
  EXPECT_FALSE(WholeNumber({1, 2}));
  EXPECT_FALSE(WholeNumber({Fraction::Whole{1} << 64}));
}

}  // namespace
}  // namespace etude

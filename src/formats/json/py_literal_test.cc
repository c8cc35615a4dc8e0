#include "src/formats/json/py_literal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace etude {
namespace {

using Kind = PyItem::Kind;

TEST(PyLiteral, ReadsWhatPythonPrints) {
  PyLiteral literal;
  ASSERT_TRUE(literal.Parse("[1, -2.5, True, None, 'a', [\"it's\", []], inf, -inf, nan]", 8));
  const auto& items = literal.items();
  ASSERT_EQ(items.size(), 12u);
  EXPECT_EQ(items[0].kind, Kind::kList);
  EXPECT_EQ(items[0].end, 12u);
  EXPECT_EQ(items[1].integer, 1);
  EXPECT_EQ(items[2].real, -2.5);
  EXPECT_TRUE(items[3].flag);
  EXPECT_EQ(items[4].kind, Kind::kNone);
  EXPECT_EQ(items[5].text, "a");
  EXPECT_EQ(items[6].end, 9u);
  EXPECT_EQ(items[7].text, "it's");
  EXPECT_EQ(items[8].kind, Kind::kList);
  EXPECT_TRUE(std::isinf(items[9].real));
  EXPECT_LT(items[10].real, 0);
  EXPECT_TRUE(std::isnan(items[11].real));
}

TEST(PyLiteral, ReadsWhatJsonHas) {
  PyLiteral literal;
  ASSERT_TRUE(literal.Parse(R"(["\u00e9\ud83d\ude00\n", null, true, NaN, -Infinity])", 8));
  EXPECT_EQ(literal.items()[1].text, "\u00e9\U0001F600\n");
  EXPECT_TRUE(std::isinf(literal.items()[5].real));
}

TEST(PyLiteral, KeepsNumbersThatDoNotFit) {
  PyLiteral literal;
  ASSERT_TRUE(literal.Parse("[18446744073709551615]", 8));
  EXPECT_EQ(literal.items()[1].kind, Kind::kBigInt);
  EXPECT_EQ(literal.items()[1].text, "18446744073709551615");
}

TEST(PyLiteral, RefusesEverythingElse) {
  PyLiteral literal;
  for (const char* text :
       {"", "[", "]", "[1", "[1,]x", "[1 2]", "{'a': 1}", "(1, 2)", "['a]", "[1]]", "foo", "[--1]",
        "'\\ud800'", "'\\q'", "[1,,2]", "1e", "-", "[1], 2", "\xff"}) {
    EXPECT_FALSE(literal.Parse(text, 8)) << text;
  }
  EXPECT_TRUE(literal.Parse(std::string(8, '[') + std::string(8, ']'), 8));
  EXPECT_FALSE(literal.Parse(std::string(9, '[') + std::string(9, ']'), 8));
}

TEST(PyString, IsWrittenAsPythonDoes) {
  const auto repr = [](std::string_view text) {
    std::string out;
    AppendPyString(text, out);
    return out;
  };
  EXPECT_EQ(repr("cuda:0"), "'cuda:0'");
  EXPECT_EQ(repr("it's"), "\"it's\"");
  EXPECT_EQ(repr("it's \"so\""), "'it\\'s \"so\"'");
  EXPECT_EQ(repr("a\\b\n\t\x01\x7f"), "'a\\\\b\\n\\t\\x01\\x7f'");
  EXPECT_EQ(repr("\u00e9\u00a0\u200b\U0001F600"), "'\u00e9\\xa0\\u200b\U0001F600'");
}

TEST(PyDouble, IsWrittenAsPythonDoes) {
  const auto repr = [](double value) {
    std::string out;
    AppendPyDouble(value, out);
    return out;
  };
  EXPECT_EQ(repr(0.0), "0.0");
  EXPECT_EQ(repr(-0.0), "-0.0");
  EXPECT_EQ(repr(1.0), "1.0");
  EXPECT_EQ(repr(-0.005), "-0.005");
  EXPECT_EQ(repr(0.0001), "0.0001");
  EXPECT_EQ(repr(0.00001), "1e-05");
  EXPECT_EQ(repr(1.5e-7), "1.5e-07");
  EXPECT_EQ(repr(1e15), "1000000000000000.0");
  EXPECT_EQ(repr(1e16), "1e+16");
  EXPECT_EQ(repr(1.25e300), "1.25e+300");
  EXPECT_EQ(repr(123456.789), "123456.789");
  EXPECT_EQ(repr(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(repr(std::numeric_limits<double>::infinity()), "inf");
}

RC_GTEST_PROP(PyString, ReadsBackTheSame, (std::string text)) {
  // Only bytes below 0x80: others would have to be valid UTF-8.
  for (char& c : text) c = static_cast<char>(c & 0x7F);
  std::string written;
  AppendPyString(text, written);
  PyLiteral literal;
  RC_ASSERT(literal.Parse(written, 1));
  RC_ASSERT(literal.items()[0].text == text);
}

RC_GTEST_PROP(PyDouble, ReadsBackTheSame, (double value)) {
  std::string written;
  AppendPyDouble(value, written);
  PyLiteral literal;
  RC_ASSERT(literal.Parse(written, 1));
  RC_ASSERT(literal.items()[0].kind == Kind::kDouble);
  RC_ASSERT(literal.items()[0].real == value);
}

RC_GTEST_PROP(PyLiteral, NeverReadsPastTheEnd, (std::string text)) {
  PyLiteral literal;
  for (size_t i = 0; i <= text.size(); ++i) literal.Parse(text.substr(0, i), 4);
}

}  // namespace
}  // namespace etude

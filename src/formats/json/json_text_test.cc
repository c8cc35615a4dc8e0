#include "src/formats/json/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace etude {
namespace {

TEST(JsonText, AcceptsValidJson) {
  for (const char* text :
       {"1", "-0.5e+3", "\"a\\u00e9\\n\"", "[]", "{}", "[1,[2,{\"a\":null}],true]",
        " { \"a\" : [ ] } ", "0", "-0", "1E5", "[NaN]"}) {
    EXPECT_TRUE(CheckJson(text).valid) << text;
  }
  EXPECT_EQ(CheckJson("[NaN,-Infinity,{\"a\":Infinity}]").non_finite, 3u);
}

TEST(JsonText, RefusesInvalidJson) {
  for (const char* text :
       {"",           "01",          "1.",     ".5",    "+1",    "1e",      "--1",      "\"a",
        "\"\\q\"",    "\"\\u12g4\"", "\"\n\"", "[1,]",  "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}",
        "{\"a\":1,}", "[}",          "nul",    "truee", "1 2",   "[1]]",    "NaNs"}) {
    EXPECT_FALSE(CheckJson(text).valid) << text;
  }
}

TEST(JsonText, CheckNeedsNoStack) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_TRUE(CheckJson(deep).valid);
  EXPECT_FALSE(CheckJson(deep.substr(1)).valid);
}

TEST(JsonText, FindsTheValueAtTheBeginning) {
  EXPECT_EQ(JsonValueAt(" [1, \"]\"] , 2")->text, "[1, \"]\"]");
  EXPECT_EQ(JsonValueAt("12,")->text, "12");
  EXPECT_EQ(JsonValueAt("\"a\\\"b\" }")->text, "\"a\\\"b\"");
  EXPECT_FALSE(JsonValueAt("[1").has_value());
}

struct Repair {
  const char* before;
  const char* after;
  uint64_t escapes;
  uint64_t utf8;
};

TEST(JsonText, RepairsStrings) {
  const Repair repairs[] = {
      {R"(["a\\b\n\u00e9"])", R"(["a\\b\n\u00e9"])", 0, 0},
      {R"({"path":"C:\Users\q"})", R"({"path":"C:\\Users\\q"})", 2, 0},
      {"\"tab\there\"", R"("tab\u0009here")", 1, 0},
      {R"("\u12")", R"("\\u12")", 1, 0},
      {R"("\ud800")", R"("\ufffd")", 0, 1},
      {R"("\ud83d\ude00")", R"("\ud83d\ude00")", 0, 0},
      {R"("\ude00\ud83dx")", R"("\ufffd\ufffdx")", 0, 2},
      {"\"\xC3\xA9\xF0\x9F\x98\x80\"", "\"\xC3\xA9\xF0\x9F\x98\x80\"", 0, 0},
      {"\"\xC3\x28\"", "\"\xEF\xBF\xBD(\"", 0, 1},
      {"\"\xED\xA0\x80\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", 0, 3},
      {"\"\xC0\x80\xFF\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", 0, 3},
      {"\n{\t\"a\":1}", "\n{\t\"a\":1}", 0, 0},
  };
  for (const Repair& repair : repairs) {
    std::string text = repair.before;
    Stats stats;
    RepairJsonStrings(text, stats);
    EXPECT_EQ(text, repair.after);
    EXPECT_EQ(stats[Stat::kRepairedEscape], repair.escapes) << repair.before;
    EXPECT_EQ(stats[Stat::kRepairedUtf8], repair.utf8) << repair.before;
    EXPECT_TRUE(CheckJson(text).valid) << text;
  }
}

TEST(JsonText, WritesStrings) { EXPECT_EQ(JsonString("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")"); }

TEST(JsonText, ReadsWholeNumbersOfTheirRange) {
  EXPECT_EQ(JsonInt(" -9223372036854775808 "), INT64_MIN);
  EXPECT_EQ(JsonInt("9223372036854775808"), std::nullopt);
  EXPECT_EQ(JsonUint("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(JsonUint("-1"), std::nullopt);
  for (const char* text : {"", "1.0", "1e3", "01", "-01", "0x1", "null", "1 2"}) {
    EXPECT_EQ(JsonInt(text), std::nullopt) << text;
  }
}

struct Micros {
  const char* text;
  std::optional<int64_t> nanos;
  bool rounded;
};

TEST(JsonText, ReadsMicrosecondsExactly) {
  const Micros rows[] = {
      {"0", 0, false},
      {"12", 12'000, false},
      {"-1.5", -1'500, false},
      {"4368835824652.597", 4'368'835'824'652'597, false},
      {"1694128201426842", 1'694'128'201'426'842'000, false},
      {"0.001", 1, false},
      {"0.0005", 0, true},  // half to even
      {"0.0015", 2, true},
      {"0.00050001", 1, true},
      {"1.2345", 1'234, true},
      {"42.39100000000001", 42'391, false},  // rounding errors of doubles are less than a
                                             // picosecond
      {"42.39099999999999", 42'391, false},
      {"1e3", 1'000'000, false},
      {"2.5E-2", 25, false},
      {"1.5e+1", 15'000, false},
      {"1e-9", 0, false},
      {"1e-4", 0, true},
      {"0e999999999", 0, false},
      {"9223372036854775.807", INT64_MAX, false},
      {"9223372036854775.808", std::nullopt, false},
      {"1e999", std::nullopt, false},
      {"1e99999999999", std::nullopt, false},
      {"NaN", std::nullopt, false},
      {"", std::nullopt, false},
      {"1e", std::nullopt, false},
      {"\"1\"", std::nullopt, false},
  };
  for (const Micros& row : rows) {
    const JsonTime time = JsonMicros(row.text);
    EXPECT_EQ(time.nanos.has_value(), row.nanos.has_value()) << row.text;
    if (time.nanos && row.nanos) {
      EXPECT_EQ(time.nanos->count, *row.nanos) << row.text;
    }
    EXPECT_EQ(time.rounded, row.rounded) << row.text;
  }
}

}  // namespace
}  // namespace etude

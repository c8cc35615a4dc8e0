#include "src/transform/operators/operator_table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace etude {
namespace {

const std::string kHead = std::string(OperatorTableHeading()) + "\n";

OperatorTable Planted() {
  OperatorTable table{.machine = {.device = "cpu",
                                  .processor = "AMD \"EPYC\", 2 cores",
                                  .threads = 2,
                                  .torch = "2.13.0",
                                  .in_step = false},
                      .times = {}};
  table.times[{"aten::mm", "float32[8,4],float32[4,4]:1:4"}] = {
      .time_ns = 1234.5, .spread = 0.0625, .calls = 40, .noisy = false};
  table.times[{"aten::relu", ""}] = {.time_ns = 2e6, .spread = 0.5, .calls = 3, .noisy = true};
  table.times[{"lib::load", "'a\nb',\"c\""}] = {.time_ns = 1, .spread = 0, .calls = 1};
  return table;
}

TEST(OperatorTable, IsReadAsItWasWritten) {
  const OperatorTable table = Planted();
  const auto read = ParseOperatorTable(OperatorTableText(table), "t.csv");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, table);
  ASSERT_NE(read->Find({"aten::relu", ""}), nullptr);
  EXPECT_EQ(read->Find({"aten::relu", "1"}), nullptr);
}

TEST(OperatorTable, MayHaveNoRows) {
  const auto read = ParseOperatorTable("\xEF\xBB\xBF" + kHead + "\r\n", "t.csv");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->times.empty());
}

TEST(OperatorTable, ErrorsNameTheLine) {
  const std::string row = "aten::mm,1,cpu,EPYC,1,2.13.0,in step,5,100,0.1,measured\n";
  const auto error = [&](const std::string& text) {
    const auto read = ParseOperatorTable(text, "t.csv");
    EXPECT_FALSE(read) << text;
    if (read) return std::string();
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    return read.error().message;
  };
  EXPECT_EQ(error("").substr(0, 40), "t.csv: found an empty file, expected a t");
  EXPECT_EQ(error("\nop,time\n").substr(0, 39), "t.csv:2: found 'op,time', expected the ");
  EXPECT_EQ(error(kHead + row + "a,b\n"), "t.csv:3: found 2 values, expected 11");
  EXPECT_EQ(error(kHead + row + row),
            "t.csv:3: found a second time of this operator, expected one");
  EXPECT_EQ(error(kHead + "\"aten::mm\n"), "t.csv:2: found a quotation mark that is not closed");
  EXPECT_EQ(error(kHead + row + "aten::mm,2,cpu,Xeon,1,2.13.0,in step,5,100,0.1,measured\n"),
            "t.csv:3: processor: found 'Xeon', expected 'EPYC' as in line 2: a table describes one "
            "machine");
  const auto wrong = [&](std::string_view right, std::string_view other) {
    std::string bad = row;
    bad.replace(bad.find(right), right.size(), other);
    return error(kHead + bad);
  };
  EXPECT_EQ(wrong("aten::mm", ""),
            "t.csv:2: found '', expected the name of an operator, such as aten::mm");
  EXPECT_EQ(wrong(",1,2.13", ",0,2.13"), "t.csv:2: found '0', expected a number of threads from 1");
  EXPECT_EQ(
      wrong("in step", "alone"),
      "t.csv:2: found 'alone', expected 'in step', 'in isolation' or one of them with ', N at "
      "once'");
  EXPECT_EQ(
      wrong("in step", "\"in step, 1 at once\""),
      "t.csv:2: found 'in step, 1 at once', expected 'in step', 'in isolation' or one of them "
      "with ', N at once'");
  EXPECT_EQ(wrong(",5,", ",five,"), "t.csv:2: found 'five', expected a number of calls from 1");
  EXPECT_EQ(wrong(",100,", ",-1,"), "t.csv:2: found '-1', expected a time above 0 in nanoseconds");
  EXPECT_EQ(wrong(",100,", ",inf,"),
            "t.csv:2: found 'inf', expected a time above 0 in nanoseconds");
  EXPECT_EQ(wrong(",0.1,", ",nan,"), "t.csv:2: found 'nan', expected a spread of at least 0");
  EXPECT_EQ(wrong(",measured", ",kept"), "t.csv:2: found 'kept', expected 'measured' or 'noisy'");
}

TEST(OperatorTable, MachinesDifferByAnyFact) {
  OperatorMachine one{.device = "cpu", .processor = "EPYC", .torch = "2.13.0"};
  OperatorMachine other = one;
  EXPECT_EQ(DifferenceOf(one, other), "");
  other.in_step = false;
  EXPECT_EQ(DifferenceOf(one, other), "measured: found 'in step', expected 'in isolation'");
  other = one;
  other.at_once = 4;
  EXPECT_EQ(DifferenceOf(one, other), "measured: found 'in step', expected 'in step, 4 at once'");
  other.threads = 2;
  EXPECT_EQ(DifferenceOf(one, other), "threads: found '1', expected '2'");
}

}  // namespace
}  // namespace etude

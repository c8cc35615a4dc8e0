#include "src/report/text/table.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

Table Example() {
  return {.key = "operators",
          .title = "operators",
          .columns = {{"name", "name", Unit::kText},
                      {"total_ns", "time", Unit::kTime},
                      {"share", "share", Unit::kShare}},
          .rows = {{std::string("a,\"b\""), int64_t{1'500}, 0.25},
                   {std::string("mm"), Cell(), Cell()}}};
}

TEST(Table, TextNamesUnitsAndWhatIsUnknown) {
  EXPECT_EQ(ToText(Example()),
            "operators\n"
            "  name     time   share\n"
            "  a,\"b\"  1.5 µs  25.0 %\n"
            "  mm          –       –\n");
}

TEST(Table, TextCountsWhatItLeavesOut) {
  EXPECT_TRUE(ToText(Example(), 1).ends_with("  and 1 more\n"));
}

TEST(Table, TextCutsLongNamesBetweenCodePoints) {
  Table table = Example();
  std::string name(59, 'x');
  table.rows = {{name + "µ", Cell(), Cell()}, {name + "µy", Cell(), Cell()}};
  EXPECT_NE(ToText(table).find(name + "µ "), std::string::npos);
  EXPECT_NE(ToText(table).find(name + "µ… "), std::string::npos);
  EXPECT_NE(ToCsv(table).find(name + "µy,"), std::string::npos) << "programs get all";
}

TEST(Table, NoRowsNoText) {
  Table table = Example();
  table.rows.clear();
  EXPECT_EQ(ToText(table), "");
}

TEST(Table, CsvQuotesAndLeavesUnknownEmpty) {
  EXPECT_EQ(ToCsv(Example()), "name,total_ns,share\r\n\"a,\"\"b\"\"\",1500,0.25\r\nmm,,\r\n");
}

// Spreadsheets would run them.
TEST(Table, CsvHasNoFormulas) {
  Table table = Example();
  const char* texts[] = {
      "=HYPERLINK(A1)", "+cmd|' /C calc'!A0", "@sum", "-2+3", "\t=1", "-5", "+1.5"};
  table.rows.clear();
  for (const char* text : texts) table.rows.push_back({std::string(text), Cell(), Cell()});
  EXPECT_EQ(ToCsv(table),
            "name,total_ns,share\r\n'=HYPERLINK(A1),,\r\n'+cmd|' /C calc'!A0,,\r\n'@sum,,\r\n"
            "'-2+3,,\r\n'\t=1,,\r\n-5,,\r\n+1.5,,\r\n");
}

TEST(Table, JsonHasAnObjectPerRow) {
  EXPECT_EQ(ToJson(Example()).dump(), R"([{"name":"a,\"b\"","total_ns":1500,"share":0.25},)"
                                      R"({"name":"mm","total_ns":null,"share":null}])");
}

}  // namespace
}  // namespace etude

#include "src/report/page/chart.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude {
namespace {

Table Times() {
  return {.key = "ops",
          .title = "ops",
          .columns = {{"rank", "rank", Unit::kText},
                      {"name", "name", Unit::kText},
                      {"part", "part", Unit::kText},
                      {"self_ns", "self", Unit::kTime},
                      {"total_ns", "total", Unit::kTime}},
          .rows = {{int64_t{0}, std::string("mm"), std::string("host"), int64_t{10}, int64_t{11}},
                   {int64_t{0}, std::string("add"), std::string("device"), int64_t{50}, Cell()},
                   {int64_t{1}, std::string("mm"), std::string("host"), int64_t{30}, int64_t{31}},
                   {int64_t{1}, std::string("sub"), std::string("host"), Cell(), Cell()}}};
}

TEST(Bars, SumsRowsOfOneName) {
  const Chart chart = Bars(Times(), {.title = "t",
                                     .categories = {"name"},
                                     .values = {"self_ns", "total_ns"},
                                     .largest_first = true});
  EXPECT_EQ(chart.unit, Unit::kTime);
  EXPECT_EQ(chart.categories, (std::vector<std::string>{"mm", "add"}));  // 81, 50; sub is unknown
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].name, "self");
  EXPECT_EQ(chart.series[0].values, (std::vector<Cell>{int64_t{40}, int64_t{50}}));
  EXPECT_EQ(chart.series[1].values, (std::vector<Cell>{int64_t{42}, Cell()}));
}

TEST(Bars, TurnsAColumnIntoSeries) {
  const Chart chart =
      Bars(Times(), {.categories = {"rank"}, .values = {"self_ns"}, .series = "part"});
  EXPECT_EQ(chart.categories, (std::vector<std::string>{"rank 0", "rank 1"}));
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[1].name, "device");
  EXPECT_EQ(chart.series[1].values, (std::vector<Cell>{int64_t{50}, Cell()}));
}

TEST(Bars, TakesOnlyRowsThatAreAskedForAndCountsWhatItLeavesOut) {
  const Chart chart = Bars(Times(), {.categories = {"rank", "name"},
                                     .values = {"self_ns"},
                                     .where = {{"part", "host"}},
                                     .most = 1});
  EXPECT_EQ(chart.categories, (std::vector<std::string>{"rank 0 · mm"}));
  EXPECT_EQ(chart.note, "1 more are in the table");
}

TEST(Bars, OfUnknownFiguresHaveNoSeries) {
  Table table = Times();
  table.rows = {table.rows.back()};
  EXPECT_TRUE(Bars(table, {.categories = {"name"}, .values = {"self_ns"}}).series.empty());
  EXPECT_TRUE(Bars(table, {.categories = {"name"}, .values = {"no_such"}}).series.empty());
}

TEST(Steps, KeepsPeaks) {
  Table table{.key = "t",
              .columns = {{"device", "device", Unit::kText},
                          {"time_ns", "at", Unit::kTime},
                          {"bytes", "in use", Unit::kBytes}}};
  for (int64_t i = 0; i < 1000; ++i) {
    table.rows.push_back({std::string("cpu"), i, i == 517 ? int64_t{99} : int64_t{1}});
  }
  table.rows.push_back({std::string("cpu"), Cell(), int64_t{500}});
  const Chart chart =
      Steps(table, {.series = {"device"}, .time = "time_ns", .value = "bytes", .most = 10});
  ASSERT_EQ(chart.series.size(), 1U);
  EXPECT_LE(chart.series[0].times.size(), 11U);
  EXPECT_EQ(
      std::count(chart.series[0].values.begin(), chart.series[0].values.end(), Cell(int64_t{99})),
      1);
}

TEST(Points, LeaveUnknownFiguresOut) {
  Table table{.key = "t",
              .columns = {{"pair", "pair", Unit::kCount},
                          {"a_ns", "original", Unit::kTime},
                          {"b_ns", "replay", Unit::kTime}},
              .rows = {{int64_t{1}, int64_t{10}, Cell()}, {int64_t{2}, int64_t{20}, int64_t{21}}}};
  const Chart chart = Points(table, {.title = "t", .over = "pair", .values = {"a_ns", "b_ns"}});
  EXPECT_EQ(chart.unit, Unit::kTime);
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].times, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(chart.series[1].times, std::vector<int64_t>{2});
  EXPECT_EQ(chart.series[1].values, std::vector<Cell>{int64_t{21}});
}

TEST(Intervals, HaveRowsWithAValue) {
  Table table{.key = "t",
              .columns = {{"metric", "metric", Unit::kText},
                          {"error", "error", Unit::kShare},
                          {"low", "from", Unit::kShare},
                          {"high", "to", Unit::kShare},
                          {"bar", "bar", Unit::kShare}},
              .rows = {{std::string("a"), 0.01, -0.02, Cell(), 0.05},
                       {std::string("b"), Cell(), Cell(), Cell(), 0.05}}};
  const IntervalChoice choice = {.title = "t",
                                 .category = "metric",
                                 .value = "error",
                                 .low = "low",
                                 .high = "high",
                                 .bar = "bar"};
  const Chart chart = Intervals(table, choice);
  EXPECT_EQ(chart.categories, std::vector<std::string>{"a"});
  ASSERT_EQ(chart.series.size(), 1U);
  EXPECT_EQ(chart.series[0].lows, std::vector<Cell>{-0.02});
  EXPECT_EQ(chart.series[0].highs, std::vector<Cell>{Cell()});
  EXPECT_EQ(ToJson(chart)["series"][0]["bars"], nlohmann::ordered_json::array({0.05}));
  table.rows.erase(table.rows.begin());
  EXPECT_TRUE(Intervals(table, choice).series.empty());
}

TEST(Scatter, PointsOfTwoColumnsByAThird) {
  const Table table{.key = "points",
                    .title = "Points",
                    .columns = {{"name", "name"},
                                {"cost", "price", Unit::kNumber},
                                {"step_ns", "step", Unit::kTime},
                                {"best", "front"}},
                    .rows = {{"a", 2.5, int64_t{10}, "best"},
                             {"b", 3.5, int64_t{20}, Cell()},
                             {"c", Cell(), int64_t{30}, Cell()},
                             {"d", 1.5, int64_t{40}, "best"}}};
  const Chart chart = Scatter(table, {.title = "T",
                                      .names = {"name"},
                                      .over = "cost",
                                      .value = "step_ns",
                                      .series = "best",
                                      .most = 2});
  EXPECT_EQ(chart.unit, Unit::kTime);
  EXPECT_EQ(chart.over_unit, Unit::kNumber);
  EXPECT_EQ(chart.over_title, "price");
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].name, "best");
  EXPECT_EQ(chart.series[0].values, std::vector<Cell>{int64_t{10}});
  EXPECT_EQ(chart.series[0].overs, std::vector<Cell>{2.5});
  EXPECT_EQ(chart.series[0].names, std::vector<std::string>{"a"});
  EXPECT_EQ(chart.series[1].names, std::vector<std::string>{"b"});
  EXPECT_EQ(chart.note, "1 more are in the table");
  const nlohmann::ordered_json json = ToJson(chart);
  EXPECT_EQ(json["kind"], "scatter");
  EXPECT_EQ(json["over_unit"], "number");
  EXPECT_EQ(json["series"][0]["overs"][0], 2.5);
}

TEST(Parallel, ALineOverAnAxisForEachKnownColumn) {
  Table table{.key = "tasks",
              .title = "Tasks",
              .columns = {{"task", "task"},
                          {"flop", "FLOP", Unit::kNumber},
                          {"epochs", "epochs", Unit::kNumber},
                          {"step_ns", "step", Unit::kTime},
                          {"share", "part", Unit::kShare}},
              .rows = {{"a", 1e6, Cell(), int64_t{20}, 0.01}, {"b", 1e8, Cell(), Cell(), 0.5}}};
  const ParallelChoice choice = {
      .title = "T", .name = "task", .values = {"flop", "epochs", "step_ns", "share"}};
  const Chart chart = Parallel(table, choice);
  ASSERT_EQ(chart.axes.size(), 3U);
  EXPECT_EQ(chart.axes[0].title, "FLOP");
  EXPECT_TRUE(chart.axes[0].is_log);
  EXPECT_EQ(chart.axes[1].unit, Unit::kTime);
  EXPECT_FALSE(chart.axes[1].is_log);
  EXPECT_FALSE(chart.axes[2].is_log) << "a share";
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[1].name, "b");
  EXPECT_EQ(chart.series[1].values, (std::vector<Cell>{1e8, Cell(), 0.5}));
  const nlohmann::ordered_json json = ToJson(chart);
  EXPECT_EQ(json["kind"], "parallel");
  EXPECT_EQ(json["axes"][0].dump(), R"({"title":"FLOP","unit":"number","is_log":true})");
  table.columns.resize(2);
  EXPECT_TRUE(Parallel(table, choice).series.empty());
}

}  // namespace
}  // namespace etude

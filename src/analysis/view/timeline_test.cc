#include "src/analysis/view/timeline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;

// Returns the events of a row as "outer@0+10 …".
std::string RowText(const Timeline& timeline, const Timeline::Row& row) {
  std::string text;
  for (size_t i = 0; i < row.begins.size(); ++i) {
    const Nanos since = row.begins[i] - timeline.span->begin;
    text += (i == 0 ? "" : " ") + timeline.names[row.names[i]].text + "@" +
            std::to_string(since.count / 1000) + "+" + std::to_string(row.lengths[i].count / 1000);
  }
  return text;
}

TEST(Timeline, StacksCallsBelowCallersAndKeepsLanesApart) {
  const Trace trace = PlantedTrace()
                          .Operator("outer", 9, 10, 30)
                          .Operator("inner", 9, 12, 15)
                          .Operator("inner", 9, 15, 20)
                          .Operator("late", 9, 40, 50)
                          .Operator("other", 10, 11, 13)
                          .Kernel("k", 7, 20, 60, 1)
                          .Read();
  const Timeline timeline = MakeTimeline(trace, 100);
  ASSERT_EQ(timeline.lanes.size(), 3U);
  EXPECT_EQ(timeline.lanes[0].title, "thread 9");
  ASSERT_EQ(timeline.lanes[0].rows.size(), 2U);
  EXPECT_EQ(RowText(timeline, timeline.lanes[0].rows[0]), "outer@0+20 late@30+10");
  EXPECT_EQ(RowText(timeline, timeline.lanes[0].rows[1]), "inner@2+3 inner@5+5");
  EXPECT_EQ(timeline.lanes[1].title, "thread 10");
  EXPECT_EQ(timeline.lanes[2].title, "device 0 stream 7");
  EXPECT_EQ(timeline.lanes[2].place, Place::kDevice);
  EXPECT_EQ(RowText(timeline, timeline.lanes[2].rows[0]), "k@10+40");
  EXPECT_EQ(timeline.events, 6U);
  EXPECT_EQ(timeline.drawn, 6U);
  EXPECT_EQ(timeline.merged_below, Nanos{});
}

TEST(Timeline, EventsThatOverlapGetRowsOfTheirOwn) {
  const Trace trace = PlantedTrace()
                          .Kernel("a", 7, 0, 10, 1)
                          .Kernel("b", 7, 5, 20, 2)   // begins in a, ends after it
                          .Kernel("c", 7, 12, 14, 3)  // a is over, b is not
                          .Kernel("d", 7, 20, 25, 4)
                          .Read();
  const Timeline timeline = MakeTimeline(trace, 100);
  for (const Timeline::Row& row : timeline.lanes[0].rows) {
    for (size_t i = 1; i < row.begins.size(); ++i) {
      EXPECT_LE(row.begins[i - 1] + row.lengths[i - 1], row.begins[i]);
    }
  }
  ASSERT_EQ(timeline.lanes[0].rows.size(), 3U);
  EXPECT_EQ(RowText(timeline, timeline.lanes[0].rows[0]), "a@0+10 d@20+5");
  EXPECT_EQ(RowText(timeline, timeline.lanes[0].rows[2]), "c@12+2");
}

TEST(Timeline, DrawsShortNeighboursAsOneWhereThereAreTooMany) {
  PlantedTrace planted;
  for (int i = 0; i < 1000; ++i) planted.Kernel("k", 7, 10 * i, 10 * i + 2, i);
  planted.Kernel("long", 7, 20'000, 30'000, 2000);
  const Timeline timeline = MakeTimeline(planted.Read(), 10);
  EXPECT_EQ(timeline.events, 1001U);
  EXPECT_LE(timeline.drawn, 10U);
  // 10 ms of kernels in intervals of 2^21 ns: five of them, and the long one.
  EXPECT_EQ(timeline.merged_below, Nanos{int64_t{1} << 21});
  EXPECT_EQ(timeline.drawn, 6U);
  const Timeline::Row& row = timeline.lanes[0].rows[0];
  EXPECT_EQ(timeline.names[row.names[0]].text, "210 events");  // begins below 2,097.152 µs
  EXPECT_EQ(row.begins[0], timeline.span->begin);
  EXPECT_EQ(row.lengths[0], Nanos{2'092'000});
  EXPECT_EQ(timeline.names[row.names[5]].text, "long");
}

TEST(Timeline, CountsWhatIsNestedTooDeep) {
  PlantedTrace planted;
  for (int i = 0; i < 70; ++i) planted.Operator("op", 1, i, 1000 - i);
  const Timeline timeline = MakeTimeline(planted.Read(), 1000);
  EXPECT_EQ(timeline.lanes[0].rows.size(), kMostRows);
  EXPECT_EQ(timeline.too_deep, 70 - kMostRows);
  EXPECT_EQ(timeline.events, kMostRows);
}

TEST(Timeline, OfNothingIsEmpty) {
  const Timeline timeline = MakeTimeline(PlantedTrace().Read(), 10);
  EXPECT_TRUE(timeline.lanes.empty());
  EXPECT_FALSE(timeline.span);
}

}  // namespace
}  // namespace etude

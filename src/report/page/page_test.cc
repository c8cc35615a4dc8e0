#include "src/report/page/page.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/report/page/timeline_data.h"

namespace etude {
namespace {

// A timeline of one row: "a" at 100 for 10, "b" at 120 for 300; nodes 5 and 3.
Page::Track Track() {
  Timeline timeline;
  timeline.names = {{"a", NodeKind::kOperator}, {"b", NodeKind::kKernel}};
  timeline.span = Interval{Nanos{100}, Nanos{420}};
  Timeline::Row row;
  row.begins = {Nanos{100}, Nanos{120}};
  row.lengths = {Nanos{10}, Nanos{300}};
  row.names = {0, 1};
  row.nodes = {5, 3};
  timeline.lanes.push_back({.place = Place::kHost, .title = "thread 1", .rows = {row}});
  return {.title = "rank 0", .timeline = std::move(timeline), .clock_offset = {}};
}

Page Hostile(const std::string& name) {
  Page page{.title = name, .inputs = {name}, .health = Health{{{Verdict::kUsable, "n", name}}}};
  Page::Section section{.key = "ops", .title = "Operators", .notes = {name}};
  section.facts = {{"fact", name, Unit::kText}};
  section.tables.push_back(
      {.key = "t", .title = name, .columns = {{"name", name, Unit::kText}}, .rows = {{name}}});
  section.charts.push_back(Bars(section.tables[0], {.categories = {"name"}, .values = {"name"}}));
  section.tracks.push_back(Track());
  section.tracks[0].title = name;
  section.tracks[0].timeline.names[0].text = name;
  page.sections.push_back(std::move(section));
  page.remarks.push_back({name, name});
  return page;
}

size_t CountOf(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Page, HostileNamesAddNoTags) {
  const std::string tame = ToHtml(Hostile("name"));
  const std::string hostile = ToHtml(Hostile("</script><b onclick='x'>\"<!--<script>"));
  for (const char* tag : {"<script", "</script", "<b", "<!--"}) {
    EXPECT_EQ(CountOf(hostile, tag), CountOf(tame, tag)) << tag;
  }
}

TEST(Page, AsksForNothing) {
  const std::string html = ToHtml(Hostile("name"));
  EXPECT_NE(html.find("content=\"default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_EQ(CountOf(html, "<link"), 0U);
  EXPECT_EQ(CountOf(html, "unsafe-"), 0U);
}

TEST(Page, HoldsAMostOfRowsAndCountsTheRest) {
  Page page;
  Table table{.key = "t", .title = "t", .columns = {{"n", "n", Unit::kCount}}};
  for (size_t i = 0; i < kMostPageRows + 7; ++i) table.rows.push_back({static_cast<int64_t>(i)});
  table.left_out = 3;
  page.sections.push_back({.key = "s", .title = "s", .tables = {std::move(table)}});
  const auto data = ToJson(page);
  EXPECT_EQ(data["sections"][0]["tables"][0]["rows"].size(), kMostPageRows);
  EXPECT_EQ(data["sections"][0]["tables"][0]["left_out"], 10);
}

TEST(TimelineData, WritesEventsAsDifferences) {
  const auto json = TimelineJson({Track()});
  EXPECT_EQ(json["span_ns"], 320);
  EXPECT_EQ(json["names"].dump(), R"([["a","operator"],["b","kernel"]])");
  const auto& row = json["tracks"][0]["lanes"][0]["rows"][0];
  EXPECT_EQ(row["count"], 2);
  // a: 0 after the begin, length 10, name 0, +5 as 10; b: 10 after a's end, 300 = AC 02, name 1, -2
  // as 3.
  // 00 0A 00 0A  0A AC 02 01 03
  EXPECT_EQ(row["events"], "AAoACgqsAgED");
}

TEST(TimelineData, PutsTracksOnOneClock) {
  Page::Track late = Track();
  late.clock_offset = Nanos{-50};  // 50 behind: its events are 50 later
  const auto json = TimelineJson({Track(), late});
  EXPECT_EQ(json["span_ns"], 370);
  EXPECT_EQ(json["tracks"][1]["lanes"][0]["rows"][0]["events"], "MgoACgqsAgED");  // 32 is 50
}

TEST(TimelineData, OfNothingIsNull) { EXPECT_TRUE(TimelineJson({}).is_null()); }

}  // namespace
}  // namespace etude

#include "src/report/page/job_page.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;

// Makes a rank whose clock is `ahead` µs ahead: three all-reduces that end together; the last
// begins `late`.
RankFigures Rank(int64_t rank, int64_t ahead, int64_t late) {
  const std::string args =
      R"("Collective name":"allreduce","Process Group Name":"0","In msg nelems":8,"dtype":"Float")";
  PlantedTrace planted;
  planted.Operator("aten::mm", 1, ahead, ahead + 40);
  int correlation = 1;
  for (const int64_t end : {100, 200, 300}) {
    const int64_t begin = end - 50 + (end == 300 ? late : 0);
    planted.Launch(1, ahead + end - 60, ahead + end - 55, correlation);
    planted.OnDevice("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7, ahead + begin,
                     ahead + end, correlation++, args);
  }
  RankFigures figures = FiguresOf(planted.Read(), nullptr, 1000);
  figures.rank = rank;
  figures.path = "trace" + std::to_string(rank);
  return figures;
}

const Page::Section& SectionOf(const Page& page, std::string_view key) {
  for (const Page::Section& section : page.sections) {
    if (section.key == key) return section;
  }
  ADD_FAILURE() << key;
  return page.sections.front();
}

const Table& TableOf(const Page::Section& section, std::string_view key) {
  for (const Table& table : section.tables) {
    if (table.key == key) return table;
  }
  ADD_FAILURE() << key;
  return section.tables.front();
}

Page TwoRanks() {
  JobFigures job{.name = "job"};
  job.ranks.push_back(Rank(0, 0, 0));
  job.ranks.push_back(Rank(1, 5'000, 20));
  return MakeJobPage("title", {std::move(job)});
}

TEST(JobPage, PutsRanksOnOneClock) {
  const Page page = TwoRanks();
  const Page::Section& timeline = SectionOf(page, "timeline");
  ASSERT_EQ(timeline.tracks.size(), 2U);
  const auto begin = [&](size_t i) {
    return timeline.tracks[i].timeline.span->begin - timeline.tracks[i].clock_offset;
  };
  EXPECT_EQ(begin(0), Nanos{});
  EXPECT_EQ(begin(1), Nanos{});
  EXPECT_TRUE(timeline.notes.empty());
}

TEST(JobPage, SplitsCollectives) {
  const Page page = TwoRanks();
  const Table& skew = TableOf(SectionOf(page, "collectives"), "skew");
  ASSERT_EQ(skew.rows.size(), 2U);
  // rank, type, group, count, last, skew, transfer, share
  EXPECT_EQ(skew.rows[0][5], Cell(int64_t{20'000}));
  EXPECT_EQ(skew.rows[0][6], Cell(int64_t{130'000}));
  EXPECT_EQ(skew.rows[1][5], Cell(int64_t{0}));
  EXPECT_EQ(skew.rows[1][6], Cell(int64_t{130'000}));
}

TEST(JobPage, SaysWhichRankARowIsOf) {
  const Page page = TwoRanks();
  const Table& ops = TableOf(SectionOf(page, "operators"), "ops");
  EXPECT_EQ(ops.columns[0].key, "rank");
  EXPECT_EQ(ops.rows.front()[0], Cell(int64_t{0}));
  EXPECT_EQ(ops.rows.back()[0], Cell(int64_t{1}));
}

TEST(JobPage, NotesSayOfWhomTheyAre) {
  JobFigures job{.name = "job"};
  for (int64_t rank = 0; rank < 3; ++rank) {
    job.ranks.push_back(Rank(rank, 0, 0));
    job.ranks.back().steps.notes = {"of all"};
  }
  job.ranks[0].steps.notes.emplace_back("of the first");
  for (const size_t rank : {1U, 2U}) job.ranks[rank].steps.notes.emplace_back("of two");
  const Page page = MakeJobPage("title", {std::move(job)});
  EXPECT_EQ(
      SectionOf(page, "steps").notes,
      (std::vector<std::string>{"of all", "rank 0: of the first", "rank 1 and 1 more: of two"}));
}

TEST(JobPage, RanksOfDifferentJobsAreNotMatched) {
  std::vector<JobFigures> jobs(2);
  jobs[0].name = "a";
  jobs[0].ranks.push_back(Rank(0, 0, 0));
  jobs[1].name = "b";
  jobs[1].ranks.push_back(Rank(1, 5'000, 20));
  const Page page = MakeJobPage("title", std::move(jobs));
  for (const Table& table : SectionOf(page, "collectives").tables) {
    EXPECT_NE(table.key, "skew") << table.rows.size();
  }
  const Table& ops = TableOf(SectionOf(page, "operators"), "ops");
  EXPECT_EQ(ops.rows.front()[0], Cell(std::string("a rank 0")));
}

TEST(JobPage, ClocksThatCannotBeComparedAreSaid) {
  JobFigures job{.name = "job"};
  job.ranks.push_back(Rank(0, 0, 0));
  job.ranks.push_back(FiguresOf(PlantedTrace().Operator("op", 1, 70, 80).Read(), nullptr, 1000));
  job.ranks.back().rank = 1;
  const Page page = MakeJobPage("title", {std::move(job)});
  const Page::Section& timeline = SectionOf(page, "timeline");
  EXPECT_EQ(timeline.tracks[1].timeline.span->begin, timeline.tracks[1].clock_offset);
  ASSERT_EQ(timeline.notes.size(), 1U);
  EXPECT_EQ(timeline.notes[0], "1 clock cannot be aligned with the others; its times start at 0");
}

}  // namespace
}  // namespace etude

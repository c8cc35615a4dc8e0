#include "src/trace/job.h"

#include <gtest/gtest.h>

#include <string>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

Trace MakeTrace(std::string_view name, int64_t duration, int64_t pid) {
  TraceBuilder builder;
  builder.info().pid = pid;
  NodeRow row;
  row.source_id = 1;
  row.name = builder.Intern(name);
  row.duration = Nanos{duration};
  const NodeId first = builder.AddNode(row);
  row.source_id = 2;
  row.parent = 1;
  const NodeId second = builder.AddNode(row);
  builder.AddDep(second, first, DepKind::kData);
  return builder.Finish().value();
}

TEST(Job, StoresEqualTracesOnce) {
  Job job;
  ASSERT_TRUE(job.Add(2, MakeTrace("a", 5, 30)).has_value());
  ASSERT_TRUE(job.Add(0, MakeTrace("a", 5, 10)).has_value());
  ASSERT_TRUE(job.Add(1, MakeTrace("a", 6, 20)).has_value());
  EXPECT_EQ(job.trace_count(), 2u);
  ASSERT_EQ(job.ranks().size(), 3u);
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Job::Rank& row = job.ranks()[static_cast<size_t>(rank)];
    EXPECT_EQ(row.rank, rank);
    EXPECT_EQ(row.info.pid, rank * 10 + 10) << "each keeps what is its own";
    EXPECT_EQ(job.TraceOf(row).duration(NodeId(0))->count, rank == 1 ? 6 : 5);
  }
  EXPECT_EQ(job.ranks()[0].trace, job.ranks()[2].trace);
  EXPECT_EQ(job.Find(1), &job.ranks()[1]);
  EXPECT_EQ(job.Find(3), nullptr);
}

TEST(Job, RefusesARankTwice) {
  Job job;
  ASSERT_TRUE(job.Add(0, MakeTrace("a", 5, 10)).has_value());
  EXPECT_FALSE(job.Add(0, MakeTrace("b", 5, 10)).has_value());
}

TEST(TraceContent, SeesEveryDifference) {
  const Trace trace = MakeTrace("a", 5, 1);
  EXPECT_TRUE(trace.SameContent(MakeTrace("a", 5, 1)));
  EXPECT_EQ(trace.ContentHash(), MakeTrace("a", 5, 2).ContentHash());
  EXPECT_FALSE(trace.SameContent(MakeTrace("b", 5, 1)));
  EXPECT_FALSE(trace.SameContent(MakeTrace("a", 6, 1)));
  EXPECT_NE(trace.ContentHash(), MakeTrace("a", 6, 1).ContentHash());
}

}  // namespace
}  // namespace etude

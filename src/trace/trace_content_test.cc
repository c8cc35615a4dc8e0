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

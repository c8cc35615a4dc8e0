#include "src/analysis/view/summary.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

TEST(Summary, SizesDoNotOverflow) {
  TraceBuilder builder;
  for (uint64_t id = 1; id <= 2; ++id) {
    const NodeId node = builder.AddNode({.source_id = id,
                                         .kind = NodeKind::kCollective,
                                         .place = Place::kDevice,
                                         .name = builder.Intern("all_reduce")});
    builder.SetComm(node, {.type = CollectiveType::kAllReduce, .bytes = Bytes{INT64_MAX}});
  }
  const Summary summary = Summarise(builder.Finish().value());
  ASSERT_EQ(summary.collectives.size(), 1u);
  EXPECT_EQ(summary.collectives[0].count, 2u);
  EXPECT_EQ(summary.collectives[0].bytes, Bytes{INT64_MAX});
}

TEST(Summary, AStepIsOneThoughTheDeviceMarksItToo) {
  TraceBuilder builder;
  for (const Place place : {Place::kHost, Place::kDevice}) {
    builder.AddNode({.source_id = static_cast<uint64_t>(place),
                     .kind = NodeKind::kLabel,
                     .place = place,
                     .name = builder.Intern("ProfilerStep#3")});
  }
  const Trace trace = builder.Finish().value();
  EXPECT_EQ(Summarise(trace).steps, std::vector<std::string_view>{"ProfilerStep#3"});
}

TEST(Summary, AWaitForAllStreamsIsOnNone) {
  TraceBuilder builder;
  for (const int32_t stream : {7, -1}) {
    builder.AddNode({.source_id = builder.node_count(),
                     .kind = stream < 0 ? NodeKind::kSync : NodeKind::kKernel,
                     .place = Place::kDevice,
                     .name = builder.Intern("n"),
                     .lane = builder.InternLane({.device = 0, .stream = stream})});
  }
  EXPECT_EQ(Summarise(builder.Finish().value()).streams, 1u);
}

}  // namespace
}  // namespace etude

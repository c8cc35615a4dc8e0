#include "src/formats/profile/profile_builder.h"

#include <gtest/gtest.h>

#include <utility>

namespace etude {
namespace {

// Events without a file, as a tokenizer for any format produces them.
class ProfileBuilderTest : public testing::Test {
 protected:
  static ProfilerEvent Event(std::string_view category, std::string_view name, int64_t start) {
    ProfilerEvent event;
    event.category = category;
    event.name = name;
    event.process = {.text = "100", .raw = "100"};
    event.thread = {.text = "7", .raw = "7"};
    event.start = Nanos{start};
    return event;
  }

  void Add(ProfilerEvent event, int64_t duration) {
    event.duration = Nanos{duration};
    profile_.TakeDuration(event);
    const ProfileBuilder::Spot spot = profile_.Locate(event);
    profile_.Add(event, spot, builder_.node_count());
  }

  Trace Finish() {
    profile_.Finish();
    return std::move(builder_.Finish().value());
  }

  static NodeId Node(size_t i) { return NodeId::FromIndex(i); }

  TraceBuilder builder_;
  ProfileBuilder profile_{builder_, Limits()};
};

TEST_F(ProfileBuilderTest, LaunchAndWork) {
  Add(Event("cpu_op", "aten::mm", 1000), 500);
  ProfilerEvent launch = Event("cuda_runtime", "cudaLaunchKernel", 1100);
  launch.correlation = 9;
  Add(launch, 100);
  ProfilerEvent kernel = Event("kernel", "gemm", 2000);
  kernel.correlation = 9;
  kernel.device = 0;
  kernel.stream = 7;
  kernel.extras.push_back({.key = "grid", .text = "[4,1,1]"});
  Add(kernel, 300);
  const Trace trace = Finish();
  ASSERT_EQ(trace.node_count(), 3u);
  EXPECT_EQ(trace.kind(Node(0)), NodeKind::kOperator);
  EXPECT_EQ(trace.kind(Node(1)), NodeKind::kRuntime);
  EXPECT_EQ(trace.parent(Node(1)), Node(0));
  EXPECT_EQ(trace.kind(Node(2)), NodeKind::kKernel);
  EXPECT_EQ(trace.lane(trace.lane_id(Node(2))), (Lane{.device = 0, .stream = 7}));
  EXPECT_EQ(trace.correlation(Node(2)), 9);
  ASSERT_EQ(trace.extras(Node(2)).size(), 2u);
  EXPECT_EQ(trace.text(trace.extras(Node(2))[0].text), "[4,1,1]");
  EXPECT_EQ(trace.text(trace.extras(Node(2))[1].key), "event/pid") << "the lane has no process";
}

TEST_F(ProfileBuilderTest, EndsBelongToTheLastBeginningOfTheirThread) {
  for (const auto& [name, start] : {std::pair("outer", 10), std::pair("inner", 20)}) {
    ProfilerEvent begin = Event("cpu_op", name, start);
    const ProfileBuilder::Spot spot = profile_.Locate(begin);
    profile_.AddBegin(begin, spot, builder_.node_count());
  }
  for (const int64_t at : {50, 90}) {
    ProfilerEvent end = Event("", "", at);
    ASSERT_TRUE(profile_.LocateEnd(end));
    profile_.AddEnd(end, Nanos{at});
  }
  ProfilerEvent stray = Event("", "", 95);
  EXPECT_FALSE(profile_.LocateEnd(stray));
  const Trace trace = Finish();
  EXPECT_EQ(trace.duration(Node(0)), Nanos{80});
  EXPECT_EQ(trace.duration(Node(1)), Nanos{30});
  EXPECT_EQ(trace.parent(Node(1)), Node(0));
}

TEST_F(ProfileBuilderTest, WhatTheRecordingCutOffHasNoDuration) {
  ProfilerEvent event = Event("cpu_op", "aten::mm", 10);
  event.is_unfinished = true;
  event.raw_duration = "0.5";
  Add(event, 500);
  Add(Event("cpu_op", "aten::add", 100), 50);
  const Trace trace = Finish();
  EXPECT_FALSE(trace.duration(Node(0)));
  EXPECT_EQ(trace.stats()[Stat::kUnknownDuration], 1u);
  EXPECT_EQ(trace.parent(Node(1)), Node(0)) << "it was seen for that long";
}

}  // namespace
}  // namespace etude

#include "src/replay/replay_report.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(SkippedKey, LeavesNumbersOfTheReasonOut) {
  const auto key = SkippedKey("aten::mm", "offsets[0] has to be 0, got 140437935300816");
  EXPECT_EQ(key.first, "aten::mm");
  EXPECT_EQ(key, SkippedKey("aten::mm", "offsets[0] has to be 0, got -4.67010591556669e+18"));
  EXPECT_EQ(key, SkippedKey("aten::mm", "offsets[7] has to be 0, got 0x7f3a"));
  EXPECT_NE(key, SkippedKey("aten::bmm", "offsets[0] has to be 0, got 1"));
  EXPECT_NE(key, SkippedKey("aten::mm", "offsets[0] has to be 0, got nan"));
}

TEST(SkippedKey, KeepsNamesWithDigits) {
  EXPECT_NE(SkippedKey("a", "no kernel for aten::conv2d"),
            SkippedKey("a", "no kernel for aten::conv3d"));
  EXPECT_NE(SkippedKey("a", "expected int64."), SkippedKey("a", "expected int32."));
  EXPECT_EQ(SkippedKey("a", "4 at the end 12"), SkippedKey("a", "-5 at the end 3"));
  EXPECT_NE(SkippedKey("a", "at the end 1."), SkippedKey("a", "at the end 1"));
}

TEST(IsComplete, ButForWhatIsNegligible) {
  EXPECT_TRUE(IsComplete({}));
  const SkippedOperators small{.op = "aten::mm", .count = 1, .time_share = 0.0003};
  EXPECT_TRUE(IsComplete({small}));
  EXPECT_FALSE(IsComplete({small, small}));  // not negligible together
  SkippedOperators unknown = small;
  unknown.time_share.reset();
  EXPECT_FALSE(IsComplete({unknown}));
  SkippedOperators communication = small;
  communication.op = "c10d::allreduce_";
  EXPECT_FALSE(IsComplete({communication}));
  SkippedOperators large = small;
  large.time_share = 0.5;
  EXPECT_FALSE(IsComplete({large}));
  large.stand_in_asked = true;
  EXPECT_TRUE(IsComplete({large}));
}

// Recorded overlap is serialized in a replay; less than 1 % is not reported.
TEST(ReplayReport, WhatOverlappedInTheRecordedStep) {
  ReplayReport report;
  report.recorded_step = Nanos{10'000'000};
  const auto is_said = [&] {
    return ReplayReportText(report).find("sequentially") != std::string::npos;
  };
  EXPECT_FALSE(is_said());
  EXPECT_NE(ReplayReportJson(report).find("\"thread_overlap_ms\": null"), std::string::npos);
  report.thread_overlap = Nanos{99'999};
  report.stream_overlap = Nanos{};
  EXPECT_FALSE(is_said());
  report.stream_overlap = Nanos{2'000'000};
  EXPECT_NE(ReplayReportText(report).find(
                "step overlapped device work of several streams for 2.000 ms; a"),
            std::string::npos)
      << ReplayReportText(report);
  report.recorded_step.reset();
  EXPECT_TRUE(is_said());
}

}  // namespace
}  // namespace etude

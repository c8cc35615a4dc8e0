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

}  // namespace
}  // namespace etude

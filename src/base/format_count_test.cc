#include "src/base/format_count.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(FormatCount, GroupsDigitsAndSaysOfWhat) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(14'392), "14,392");
  EXPECT_EQ(FormatCount(1'234'567), "1,234,567");
  EXPECT_EQ(FormatCount(0, "node"), "0 nodes");
  EXPECT_EQ(FormatCount(1, "node"), "1 node");
  EXPECT_EQ(FormatCount(1'234, "node"), "1,234 nodes");
  EXPECT_EQ(FormatCount(1, "class", "classes"), "1 class");
  EXPECT_EQ(FormatCount(2, "class", "classes"), "2 classes");
}

TEST(FormatCount, SharesInPercent) { EXPECT_EQ(FormatShare(0.987), "98.7 %"); }

}  // namespace
}  // namespace etude

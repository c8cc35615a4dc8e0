#include "src/base/text/format_count.h"

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

TEST(FormatCount, TimesInSensibleUnits) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(FormatTime(Nanos{850}), "850 ns");
  EXPECT_EQ(FormatTime(Nanos{9999 * kSecond}), "9999.000 s");
  EXPECT_EQ(FormatTime(Nanos{10000 * kSecond}), "2.8 h");
  EXPECT_EQ(FormatTime(Nanos{5 * 86400 * kSecond}), "5.0 days");
  EXPECT_EQ(FormatTime(Nanos{1615207264 * kSecond}), "51.2 years");
  EXPECT_EQ(FormatTime(Nanos{-1615207264 * kSecond}), "-51.2 years");
}

TEST(FormatCount, SharesInPercent) { EXPECT_EQ(FormatShare(0.987), "98.7 %"); }

}  // namespace
}  // namespace etude

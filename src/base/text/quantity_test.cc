#include "src/base/text/quantity.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(ParseWhole, TakesWholeNumbersThatFit) {
  EXPECT_EQ(ParseWhole("12"), 12);
  EXPECT_EQ(ParseWhole("-3"), -3);
  EXPECT_EQ(ParseWhole("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1.0", "0x10", "9223372036854775808"}) {
    EXPECT_EQ(ParseWhole(text), std::nullopt) << text;
  }
}

TEST(ParseRanges, KeepsTheOrderOfTheList) {
  EXPECT_EQ(ParseRanges("8,0-3,8", 9), (std::vector<int64_t>{8, 0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseRanges("0", 0), std::vector<int64_t>{0});
  for (const char* text : {"", "0,", ",0", "3-2", "-1", "0-", "10", "0-10", "0-9,1", "a", "1 ,2"}) {
    EXPECT_EQ(ParseRanges(text, 9), std::nullopt) << text;
  }
}

TEST(ParseTime, TakesANumberWithItsUnit) {
  EXPECT_EQ(ParseTime("1.5ms"), Nanos{1'500'000});
  EXPECT_EQ(ParseTime("20 us"), Nanos{20'000});
  EXPECT_EQ(ParseTime("20µs"), Nanos{20'000});
  EXPECT_EQ(ParseTime("0"), Nanos{0});
  EXPECT_EQ(ParseTime("2min"), Nanos{120'000'000'000});
  EXPECT_EQ(ParseTime("0.001us"), Nanos{1});
}

TEST(ParseTime, RefusesTheRest) {
  for (const char* text : {"", "5", "ms", ".5ms", "5.ms", "1.2.3ms", "-1ms", "0.5ns", "1e3ns",
                           "99999999999999999999s", "10000000000s", "1 parsec"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

TEST(ParseBytes, KnowsBothKindsOfPrefixes) {
  EXPECT_EQ(ParseBytes("4096"), Bytes{4096});
  EXPECT_EQ(ParseBytes("64MiB"), Bytes{64 << 20});
  EXPECT_EQ(ParseBytes("1.5 GB"), Bytes{1'500'000'000});
  EXPECT_EQ(ParseBytes("1.5KiB"), Bytes{1536});
  EXPECT_EQ(ParseBytes("1.0001KiB"), std::nullopt);
  EXPECT_EQ(ParseBytes("1mb"), std::nullopt);
}

TEST(ParseBytesWithUnit, RoundsDownAndRequiresAUnit) {
  EXPECT_EQ(ParseBytesWithUnit("25MiB"), Bytes{25 << 20});
  EXPECT_EQ(ParseBytesWithUnit("0.1MiB"), Bytes{104'857});
  EXPECT_EQ(ParseBytesWithUnit("0.5B"), Bytes{0});
  for (const char* text : {"", "0", "25", "1.5", "MiB", "25M", "-1B", "1e3B"}) {
    EXPECT_EQ(ParseBytesWithUnit(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace etude

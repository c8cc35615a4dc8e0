#include "src/jobs/rank_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace etude {
namespace {

using Ranks = std::vector<int64_t>;

constexpr int64_t kRanks[] = {0, 1, 2, 5, 6};

TEST(ChooseFromRanks, TakesANumberAsHowManyAndAListAsRanks) {
  const auto chosen = [](const char* text) {
    return ChooseFromRanks(text, kRanks, "job").value_or(Ranks());
  };
  EXPECT_EQ(chosen("all"), Ranks({0, 1, 2, 5, 6}));
  EXPECT_EQ(chosen("4"), Ranks({0, 1, 2, 5}));
  EXPECT_EQ(chosen("6,0"), Ranks({0, 6}));
  EXPECT_EQ(chosen("5-6,0-1"), Ranks({0, 1, 5, 6}));
  EXPECT_EQ(chosen("6-6"), Ranks({6}));
}

TEST(ChooseFromRanks, SaysWhatWasExpected) {
  for (const char* text : {"", "0", "6", "-1", "2-3", "3,4", "0,0", "0-2,1", "2-0", "0,", "1e3",
                           "all,1", "0-9999999999"}) {
    const auto wrong = ChooseFromRanks(text, kRanks, "job");
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().message,
              std::string("--ranks: found '") + text +
                  "', expected all, a number from 1 to 5, or a list of ranks as 0,6");
  }
  constexpr int64_t kOne[] = {3};
  EXPECT_EQ(ChooseFromRanks("2", kOne, "job").error().message,
            "--ranks: found '2', expected all or 1: job has one rank");
}

}  // namespace
}  // namespace etude

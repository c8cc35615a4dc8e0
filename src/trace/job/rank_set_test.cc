#include "src/trace/job/rank_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace etude {
namespace {

using Ranks = std::vector<int64_t>;

TEST(RankSet, FoldsRegularRanks) {
  // Every second rank of the first half of each of three nodes of eight ranks.
  const Ranks ranks = {0, 2, 8, 10, 16, 18};
  const RankSet set = RankSet::Of(ranks);
  ASSERT_EQ(set.blocks().size(), 1u);
  EXPECT_EQ(set.blocks()[0], (RankSet::Block{.first = 0, .dims = {{2, 2}, {3, 8}}}));
  EXPECT_EQ(set.Ranks(), ranks);
  EXPECT_EQ(set.At(3), 10);
  EXPECT_EQ(set.IndexOf(10), 3);
  EXPECT_FALSE(set.Contains(4));
  EXPECT_FALSE(set.Contains(24));
  EXPECT_FALSE(set.Contains(1));
}

TEST(RankSet, HoldsAnyRanks) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Ranks ranks;
    for (int64_t rank = 0; rank < 40; ++rank) {
      if (random() % 3 != 0) ranks.push_back(rank);
    }
    const RankSet set = RankSet::Of(ranks);
    ASSERT_EQ(set.Ranks(), ranks);
    for (int64_t rank = -1; rank < 42; ++rank) {
      const auto at = std::ranges::find(ranks, rank);
      ASSERT_EQ(set.Contains(rank), at != ranks.end()) << rank;
      if (at != ranks.end()) {
        ASSERT_EQ(set.IndexOf(rank), at - ranks.begin());
      }
    }
    const auto again = RankSet::OfBlocks({set.blocks().begin(), set.blocks().end()}, "x");
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(*again, set);
  }
}

TEST(RankSet, ManyRanksAreOneBlock) {
  const RankSet set = RankSet::Below(1 << 30);
  EXPECT_EQ(set.blocks().size(), 1u);
  EXPECT_EQ(set.size(), 1 << 30);
  EXPECT_EQ(set.IndexOf(12345), 12345);
  EXPECT_EQ(RankSet::Below(0).size(), 0);
  EXPECT_FALSE(RankSet().Contains(0));
}

TEST(RankSet, RefusesWhatIsNoSet) {
  const auto fault = [](std::vector<RankSet::Block> blocks) {
    const auto set = RankSet::OfBlocks(std::move(blocks), "x");
    return set ? "" : set.error().message;
  };
  EXPECT_EQ(fault({{.first = -1, .dims = {}}}), "x: found rank -1, expected 0 to 2147483647");
  EXPECT_EQ(fault({{.first = 0, .dims = {{0, 1}}}}),
            "x: found 0 ranks 1 apart, expected 1 or more of both");
  EXPECT_EQ(fault({{.first = 0, .dims = {{4, 1}, {2, 3}}}}),
            "x: found steps of 3 over 4 ranks, expected ranks that ascend");
  EXPECT_EQ(fault({{.first = 0, .dims = {{INT64_MAX, INT64_MAX}}}}),
            "x: found ranks beyond 2147483647");
  EXPECT_EQ(fault({{.first = 0, .dims = {{4, 1}}}, {.first = 3, .dims = {}}}),
            "x: found rank 3 after 3, expected ranks that ascend");
}

TEST(RankSet, IsListedForPeople) {
  EXPECT_EQ(RankListText(std::vector<int64_t>{4, 5, 6, 9}), "4-6, 9");
  EXPECT_EQ(RankListText({}), "none");
  EXPECT_EQ(RankListText(std::vector<int64_t>{0, 1, 4, 6, 7}, 3), "0-1, 4, 6-7");
  EXPECT_EQ(RankListText(std::vector<int64_t>{0, 1, 4, 6, 7}, 2), "0-1, 4, …");
}

}  // namespace
}  // namespace etude

#include "src/transform/runnable/rank_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/transform/runnable/reducing_ranks_testing.h"

namespace etude {
namespace {

// Four ranks in pairs {0, 1} and {2, 3}; each sends to the next rank, and its pair has a root.
std::vector<RunnableRank> RanksInPairs() {
  std::vector<RunnableRank> ranks = testing_runnable::Reducing(4, 64);
  for (RunnableRank& rank : ranks) {
    const int64_t first = *rank.rank / 2 * 2;
    rank.groups = {{.name = "pair", .ranks = std::vector{first, first + 1}, .size = 2}};
    rank.nodes[1].group = 0;
    rank.nodes[1].root = 0;
    rank.nodes[2].peer = (*rank.rank + 1) % 4;
  }
  return ranks;
}

TEST(RankOrder, GroupsFollowTheirRanks) {
  std::vector<RunnableRank> ranks = RanksInPairs();
  // Rank 3 comes first, and rank 0 last.
  ASSERT_TRUE(ReorderRanks(RankOrder::Parse("3,1,2,0").value(), ranks));
  for (int64_t place = 0; place < 4; ++place) {
    EXPECT_EQ(ranks[static_cast<size_t>(place)].rank, place);
  }
  EXPECT_EQ(ranks[0].groups[0].ranks, (std::vector<int64_t>{0, 2})) << "was rank 3: {2, 3}";
  EXPECT_EQ(ranks[0].nodes[1].root, 1) << "was rank 2, which is now the second of its pair";
  EXPECT_EQ(ranks[0].nodes[2].peer, 3) << "was rank 0";
  EXPECT_EQ(ranks[1].groups[0].ranks, (std::vector<int64_t>{1, 3})) << "was rank 1: {0, 1}";
}

TEST(RankOrder, AStrideMakesDistantRanksNeighbours) {
  std::vector<RunnableRank> ranks = RanksInPairs();
  ASSERT_TRUE(ReorderRanks(RankOrder::Parse("stride:2").value(), ranks));
  // Places are those of ranks 0, 2, 1, 3.
  EXPECT_EQ(ranks[0].groups[0].ranks, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(ranks[1].groups[0].ranks, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(ranks[1].nodes[2].peer, 3) << "rank 2 sends to rank 3";
}

TEST(RankOrder, MustBeOneOfTheRanks) {
  std::vector<RunnableRank> ranks = RanksInPairs();
  EXPECT_FALSE(ReorderRanks(RankOrder::Parse("stride:3").value(), ranks));
  EXPECT_FALSE(ReorderRanks(RankOrder::Parse("0,1").value(), ranks));
  EXPECT_FALSE(ReorderRanks(RankOrder::Parse("0,1,2,4").value(), ranks));
  for (const std::string_view text : {"", "0,0", "0,", "-1", "stride:0", "stride:"}) {
    EXPECT_FALSE(RankOrder::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace etude

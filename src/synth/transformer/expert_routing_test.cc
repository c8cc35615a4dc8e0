#include "src/synth/transformer/expert_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace etude {
namespace {

using Rows = std::vector<int64_t>;

Rows Descending(Rows rows) {
  std::ranges::sort(rows, std::ranges::greater());
  return rows;
}

TEST(ExpertRouting, AllAlike) {
  ExpertsModel experts{.experts = 4, .top_k = 2, .ffn = 1};
  EXPECT_FALSE(IsUneven(experts));
  EXPECT_EQ(RowsOfExperts(experts, 0, 10), (Rows{5, 5, 5, 5}));
  EXPECT_EQ(RowsOfExperts(experts, 0, 9), (Rows{5, 5, 5, 5})) << "room for all of 18";
  experts.capacity_factor = 1.25;
  EXPECT_EQ(RowsOfExperts(experts, 0, 10), (Rows{7, 7, 7, 7}));
}

// 1, 1/2, 1/3 and 1/4 are 12, 6, 4 and 3 of 25.
TEST(ExpertRouting, ZipfsLaw) {
  ExpertsModel experts{.experts = 4, .top_k = 1, .ffn = 1, .imbalance = 1};
  EXPECT_TRUE(IsUneven(experts));
  EXPECT_EQ(Descending(RowsOfExperts(experts, 0, 25)), (Rows{12, 6, 4, 3}));
  experts.top_k = 2;
  EXPECT_EQ(Descending(RowsOfExperts(experts, 0, 25)), (Rows{24, 12, 8, 6}));
  // Not 36 of 75 but all 25 tokens; the other 50 are 23.1, 15.4 and 11.5.
  experts.top_k = 3;
  EXPECT_EQ(Descending(RowsOfExperts(experts, 0, 25)), (Rows{25, 23, 15, 12}));
  // Room for ⌈75 / 4⌉ = 19, and for ⌈1.25 · 75 / 4⌉ = 24.
  experts.capacity_factor = 1;
  EXPECT_EQ(Descending(RowsOfExperts(experts, 0, 25)), (Rows{19, 19, 15, 12}));
  experts.capacity_factor = 1.25;
  EXPECT_EQ(Descending(RowsOfExperts(experts, 0, 25)), (Rows{24, 23, 15, 12}));
}

TEST(ExpertRouting, WhoIsPreferredIsDrawnByLayerAndSeed) {
  ExpertsModel experts{.experts = 8, .top_k = 2, .ffn = 1, .imbalance = 0.5};
  const Rows rows = RowsOfExperts(experts, 3, 1000);
  EXPECT_EQ(rows, RowsOfExperts(experts, 3, 1000));
  EXPECT_EQ(rows, (Rows{162, 205, 264, 457, 229, 323, 187, 173})) << "1 / √i of 4.37";
  const Rows other = RowsOfExperts(experts, 4, 1000);
  experts.seed = 1;
  const Rows seeded = RowsOfExperts(experts, 3, 1000);
  EXPECT_NE(other, rows);
  EXPECT_NE(seeded, rows);
  EXPECT_EQ(Descending(other), Descending(rows));
  EXPECT_EQ(Descending(seeded), Descending(rows));
}

TEST(ExpertRouting, GivenShares) {
  ExpertsModel experts{.experts = 3, .top_k = 1, .ffn = 1};
  experts.shares = {5, 3, 2};
  EXPECT_EQ(RowsOfExperts(experts, 7, 7), (Rows{4, 2, 1})) << "3.5, 2.1 and 1.4";
  experts.shares = {1, 0, 1};
  EXPECT_EQ(RowsOfExperts(experts, 0, 5), (Rows{3, 0, 2}));
  experts.top_k = 2;
  EXPECT_EQ(RowsOfExperts(experts, 0, 5), (Rows{5, 0, 5}));
  experts.shares = {100, 1e-9, 1};
  EXPECT_EQ(RowsOfExperts(experts, 0, 5), (Rows{5, 0, 5}));
}

// For any shares, each token goes through top_k distinct experts.
TEST(ExpertRouting, AllTokensGoSomewhere) {
  for (const double imbalance : {0.1, 1.0, 3.0, 8.0}) {
    for (const int64_t top_k : {1, 2, 7, 64}) {
      const ExpertsModel experts{
          .experts = 64, .top_k = top_k, .ffn = 1, .imbalance = imbalance, .seed = 5};
      for (const int64_t tokens : {1, 3, 4096}) {
        const Rows rows = RowsOfExperts(experts, 1, tokens);
        EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), tokens * top_k);
        EXPECT_GE(std::ranges::min(rows), 0);
        EXPECT_LE(std::ranges::max(rows), tokens);
      }
    }
  }
}

}  // namespace
}  // namespace etude

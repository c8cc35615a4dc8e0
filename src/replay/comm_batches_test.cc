#include "src/replay/comm_batches.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

using Groups = std::vector<std::optional<std::string>>;
constexpr auto kNone = std::nullopt;
using Waits = std::vector<std::vector<uint32_t>>;

TEST(CommBatches, NeighboursOfOneGroupAreABatch) {
  EXPECT_EQ(FindCommBatches(Groups{kNone, "0", "0", "0", kNone, "", ""}, Waits(8)),
            (std::vector<CommBatch>{{1, 3}, {5, 6}}));
}

TEST(CommBatches, OneAloneOrOfAnotherGroupIsABatchOfItsOwn) {
  EXPECT_EQ(FindCommBatches(Groups{"0", kNone, "0", "1", "0"}, Waits(6)),
            (std::vector<CommBatch>{{0, 0}, {2, 2}, {3, 3}, {4, 4}}));
  EXPECT_TRUE(FindCommBatches(Groups{kNone, kNone}, Waits(3)).empty());
}

TEST(CommBatches, WhatIsAwaitedInBetweenEndsABatch) {
  // Receive, wait, forward: 3 waits for 2, and 1 for an operator before its batch.
  const Waits waits = {{}, {0}, {}, {2}, {}, {}};
  EXPECT_EQ(FindCommBatches(Groups{kNone, "0", "0", "0", "0"}, waits),
            (std::vector<CommBatch>{{1, 2}, {3, 4}}));
}

TEST(CommBatches, AnOperatorIsInOneOrNone) {
  const std::vector<CommBatch> batches = {{1, 3}, {5, 5}};
  EXPECT_EQ(BatchOf(batches, 0), nullptr);
  for (const size_t index : {1u, 2u, 3u}) EXPECT_EQ(BatchOf(batches, index), &batches[0]);
  EXPECT_EQ(BatchOf(batches, 4), nullptr);
  EXPECT_EQ(BatchOf(batches, 5), &batches[1]);
  EXPECT_EQ(BatchOf(batches, 6), nullptr);
}

}  // namespace
}  // namespace etude

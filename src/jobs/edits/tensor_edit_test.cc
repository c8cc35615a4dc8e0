#include "src/jobs/edits/tensor_edit.h"

#include <gtest/gtest.h>

#include <vector>

namespace etude {
namespace {

using Ranks = std::vector<int64_t>;

TEST(TensorEdit, ReplicasHaveGroupsOfNeighbours) {
  const auto edit = TensorEdit::Make(2);
  ASSERT_TRUE(edit);
  RunnableRank program;
  program.groups = {{.name = std::string(kTensorGroup), .ranks = Ranks(), .size = 2},
                    {.name = "data_parallel", .ranks = Ranks(), .size = 3}};
  const std::vector<RunnableRank> ranks = edit->Replicate(program, 3);
  ASSERT_EQ(ranks.size(), 6u);
  EXPECT_EQ(ranks[5].rank, 5);
  EXPECT_EQ(ranks[5].world_size, 6);
  // Tensor-parallel ranks are neighbours; the others have the same place in their groups.
  EXPECT_EQ(ranks[3].groups[0].ranks, (Ranks{2, 3}));
  EXPECT_EQ(ranks[3].groups[1].ranks, (Ranks{1, 3, 5}));
  EXPECT_EQ(ranks[2].groups[0].name, ranks[3].groups[0].name);
  EXPECT_NE(ranks[0].groups[0].name, ranks[2].groups[0].name);
  EXPECT_EQ(ranks[1].groups[1].name, ranks[5].groups[1].name);
  EXPECT_EQ(ranks[1].groups[1].size, 3);
}

TEST(TensorEdit, OneRankHasAllWeights) {
  const auto edit = TensorEdit::Make(1);
  ASSERT_TRUE(edit);
  EXPECT_TRUE(*edit);
  EXPECT_FALSE(edit->divides());
  EXPECT_FALSE(TensorEdit::Make(0));
}

}  // namespace
}  // namespace etude

#include "src/trace/words/distributed_value.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(DistributedValue, GroupsAndReductionsAreReadBack) {
  EXPECT_EQ(ProcessGroupText("3"), "<ProcessGroup> 3");
  EXPECT_EQ(ProcessGroupNameIn("<ProcessGroup> a b"), "a b");
  EXPECT_EQ(ProcessGroupNameIn("<Object>"), std::nullopt);
  EXPECT_EQ(ReductionText(4), "<ReduceOp> MAX");
  EXPECT_EQ(ReductionText(99), "<ReduceOp> 99");
  EXPECT_EQ(ReductionNameIn("<ReduceOp> MAX"), "MAX");
  EXPECT_EQ(ReductionNameIn("<ProcessGroup> MAX"), std::nullopt);
  EXPECT_EQ(ReductionNumber("SUM"), 0);
  EXPECT_EQ(ReductionNumber("AVG"), 1);
  EXPECT_EQ(ReductionNumber("PREMUL_SUM"), 8);
  EXPECT_EQ(ReductionNumber("sum"), std::nullopt);
  EXPECT_EQ(ReductionNumber("99"), std::nullopt);
}

}  // namespace
}  // namespace etude

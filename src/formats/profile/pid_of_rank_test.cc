#include "src/formats/profile/pid_of_rank.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(PidOfRank, KnowsWhatToolsThatMergeWrite) {
  struct Row {
    const char* pid;
    const char* owner;
    const char* own;
  };
  for (const Row& row : {Row{"[TP00] 100", "[TP00]", "100"},
                         {"[TP00-DP01-PP02-EP03] 0", "[TP00-DP01-PP02-EP03]", "0"},
                         {"[TP00 100]", "[TP00]", "100"},
                         {"[rank3] Spans", "[rank3]", "Spans"},
                         {"rank0_100", "rank 0", "100"},
                         {"rank_12_100", "rank 12", "100"},
                         {"Rank 1: 7", "rank 1", "7"},
                         {"Rank 1", "rank 1", ""},
                         {"100_3", "rank 3", "100"}}) {
    const auto found = ReadPidOfRank(row.pid);
    ASSERT_TRUE(found) << row.pid;
    EXPECT_EQ(found->owner, row.owner) << row.pid;
    EXPECT_EQ(found->pid, row.own) << row.pid;
  }
  for (const char* pid : {"", "100", "Spans", "[CPU]", "[]", "[] 1", "ranks", "rank", "rankA1",
                          "python_1", "1_", "_1", "1_2_3"}) {
    EXPECT_FALSE(ReadPidOfRank(pid)) << pid;
  }
}

}  // namespace
}  // namespace etude

#include "src/transform/runnable/all_reduce_form.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/transform/runnable/reducing_ranks_testing.h"

namespace etude {
namespace {

using testing_runnable::Reducing;

std::vector<std::string> CollectivesOf(const RunnableRank& rank) {
  std::vector<std::string> text;
  for (const RunnableNode& node : rank.nodes) {
    if (node.kind != NodeKind::kCollective) continue;
    std::string& line = text.emplace_back(rank.names[node.name]);
    line += " " + std::to_string(node.bytes_in.value_or(-1));
    if (node.group == RunnableNode::kNone) continue;
    for (const int64_t member : *rank.groups[node.group].ranks) {
      line += " " + std::to_string(member);
    }
  }
  return text;
}

AllReduceForm ParsedForm(std::string_view text) { return AllReduceForm::Parse(text).value(); }

TEST(AllReduceForm, ScattersAndGathersOverAllRanks) {
  std::vector<RunnableRank> ranks = Reducing(4, 1'000);
  EXPECT_EQ(ReplaceAllReduces(ParsedForm("reduce-scatter+all-gather"), 4, ranks), 4u);
  EXPECT_EQ(CollectivesOf(ranks[3]),
            (std::vector<std::string>{"reduce_scatter 1000", "all_gather 250"}));
  EXPECT_EQ(ranks[3].deps, (std::vector<uint32_t>{0, 1, 2})) << "one after another";
}

TEST(AllReduceForm, ReducesShardsAcrossNeighbours) {
  std::vector<RunnableRank> ranks = Reducing(6, 1'200);
  EXPECT_EQ(ReplaceAllReduces(ParsedForm("hierarchical:3"), 6, ranks), 6u);
  EXPECT_EQ(CollectivesOf(ranks[4]),
            (std::vector<std::string>{"reduce_scatter 1200 3 4 5", "all_reduce 400 1 4",
                                      "all_gather 400 3 4 5"}));
  EXPECT_EQ(ranks[4].deps, (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(AllReduceForm, NeighboursMustDivideTheRanks) {
  std::vector<RunnableRank> ranks = Reducing(6, 1'200);
  const auto replaced = ReplaceAllReduces(ParsedForm("hierarchical:4"), 6, ranks);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().message,
            "found an all-reduce of 6 ranks, expected a multiple of 4; nearest possible: "
            "hierarchical:3");
}

TEST(AllReduceForm, OtherFormsAreUnknown) {
  for (const std::string_view text :
       {"", "ring", "hierarchical", "hierarchical:1", "hierarchical:1.5"}) {
    EXPECT_FALSE(AllReduceForm::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace etude

#include "src/sim/program/placed_jobs.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

TEST(PlacedJobs, StepsFollowEachOther) {
  // Nodes 0 and 1 begin a step, 1 and 2 end it.
  const SimProgram program = ProgramOf({{.kind = NodeKind::kCompute, .duration = 1},
                                        {.kind = NodeKind::kCompute, .duration = 2},
                                        {.kind = NodeKind::kCompute, .duration = 3}},
                                       {{}, {}, {0}});
  const auto twice = RepeatProgram(program, 2);
  ASSERT_TRUE(twice);
  ASSERT_EQ(twice->nodes.size(), 6U);
  EXPECT_EQ(twice->nodes[5].duration, 3);
  EXPECT_EQ(twice->waits, (std::vector<uint32_t>{0, 0, 1, 2, 2, 1}));
  const auto children = [&](uint32_t node) {
    return std::vector<uint32_t>(twice->children[node].begin(), twice->children[node].end());
  };
  EXPECT_EQ(children(0), (std::vector<uint32_t>{2}));
  EXPECT_EQ(children(1), (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(children(2), (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(children(3), (std::vector<uint32_t>{5}));
  EXPECT_TRUE(children(5).empty());
}

TEST(PlacedJobs, TooManyStepsAreRefused) {
  const SimProgram program = ProgramOf({{.kind = NodeKind::kCompute}}, {{}});
  const auto many = RepeatProgram(program, 1'000'000'000);
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("expected at most"), std::string::npos);
}

TEST(PlacedJobs, GroupsAndPeersAreThoseOfTheirPlaces) {
  SimWorkload job;
  job.groups[7] = {0, 1};
  for (int64_t rank = 0; rank < 2; ++rank) {
    job.ranks.push_back(RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 1),
                                          CollectiveNode(CollectiveType::kAllReduce, 1, 1)},
                                         {{}, {0}}),
                               {7}, {1 - rank}));
  }
  const std::vector<PlacedJob> jobs = {{.workload = &job, .npus = {3, 1}},
                                       {.workload = &job, .npus = {0, 4}}};
  const auto placed = PlaceJobs(jobs, 5);
  ASSERT_TRUE(placed);
  ASSERT_EQ(placed->ranks.size(), 5U);
  EXPECT_TRUE(placed->ranks[2].program->nodes.empty()) << "idle";
  EXPECT_EQ(placed->ranks[3].peers, std::vector<int64_t>{1});
  EXPECT_EQ(placed->ranks[4].peers, std::vector<int64_t>{0});
  const auto members = [&](int64_t npu, size_t node) {
    const SimRank& rank = placed->ranks[static_cast<size_t>(npu)];
    return placed->groups.at(rank.groups[rank.program->nodes[node].group - 1]);
  };
  EXPECT_EQ(members(1, 0), (std::vector<int64_t>{3, 1})) << "all ranks of the job";
  EXPECT_EQ(members(1, 1), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(members(4, 0), (std::vector<int64_t>{0, 4}));
}

}  // namespace
}  // namespace etude

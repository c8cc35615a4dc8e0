#include "src/sim/stragglers/straggling.h"

#include <gtest/gtest.h>

#include <memory>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

// Ranks that compute twice before an all-reduce, with the given times.
class Stragglers : public ::testing::Test {
 protected:
  SimWorkload WorkloadOf(const std::vector<std::pair<int64_t, int64_t>>& times) {
    SimWorkload workload;
    for (const auto& [first, second] : times) {
      workload.ranks.push_back(RankOf(ProgramOf({{.kind = NodeKind::kCompute, .duration = first},
                                                 {.kind = NodeKind::kCompute, .duration = second},
                                                 CollectiveNode(CollectiveType::kAllReduce, 1024)},
                                                {{}, {0}, {1}})));
      names_.of_nodes[workload.ranks.back().program.get()] = {0, 1, UINT32_MAX};
    }
    return workload;
  }
  SimMachine Machine(int32_t ranks) {
    return MachineOf({{.npus = ranks, .bandwidth = 1, .latency = 500}}, CollectiveAlgorithm::kRing);
  }
  int64_t StepOf(const SimWorkload& workload) {
    return Simulate(Machine(static_cast<int32_t>(workload.ranks.size())), workload)
        .value()
        .OfRank(0)
        .end;
  }

  WorkNames names_ = {.names = {{.text = "matmul"}, {.text = "gelu"}}, .of_nodes = {}};
};

TEST_F(Stragglers, TheSlowRankAndItsOperatorExplainTheStep) {
  const SimWorkload job = WorkloadOf({{1000, 200}, {1000, 200}, {1400, 200}, {1000, 220}});
  const auto study = StudyStragglers(Machine(4), job, names_, {});
  ASSERT_TRUE(study);
  const int64_t ideal = StepOf(WorkloadOf({{1100, 205}, {1100, 205}, {1100, 205}, {1100, 205}}));
  EXPECT_EQ(study->ideal, ideal);
  EXPECT_EQ(study->kinds, 1u);
  EXPECT_EQ(study->unlike, 0u);
  ASSERT_EQ(study->ranks.size(), 1u) << "the others take less time than the mean";
  EXPECT_EQ(study->ranks[0].what, "rank 2");
  EXPECT_EQ(study->ranks[0].alone - ideal, 1600 - 1305);
  // The mean of the other ranks: 1000 and 206.67.
  EXPECT_EQ(study->ranks[0].mended - ideal, 1220 - 1305);
  ASSERT_EQ(study->operators.size(), 2u);
  EXPECT_EQ(study->operators[0].what, "matmul");
  EXPECT_EQ(study->operators[0].alone - ideal, 300);
  EXPECT_EQ(study->operators[0].mended - ideal, 1320 - 1305);
  EXPECT_EQ(study->operators[1].what, "gelu");
  EXPECT_EQ(study->operators[1].alone - ideal, 15);
}

TEST_F(Stragglers, TheMachinesOwnAreFound) {
  const SimWorkload job = WorkloadOf({{1000, 0}, {1000, 0}});
  SimMachine machine = Machine(2);
  machine.stragglers[1] = 1.5;
  const auto study = StudyStragglers(machine, job, names_, {});
  ASSERT_TRUE(study);
  EXPECT_EQ(study->ideal, StepOf(WorkloadOf({{1250, 0}, {1250, 0}})));
  ASSERT_EQ(study->ranks.size(), 1u);
  EXPECT_EQ(study->ranks[0].what, "rank 1");
  EXPECT_EQ(study->ranks[0].alone - study->ideal, 250);
  EXPECT_EQ(study->ranks[0].mended, StepOf(WorkloadOf({{1000, 0}, {1000, 0}})));
}

TEST_F(Stragglers, TimesBetweenOperatorsAreComparedByTheirSum) {
  names_.names[1].is_label = true;
  SimWorkload job = WorkloadOf({{1000, 100}, {1000, 300}});
  // The second rank has its time in two parts.
  job.ranks[1] = RankOf(ProgramOf({{.kind = NodeKind::kCompute, .duration = 1000},
                                   {.kind = NodeKind::kCompute, .duration = 100},
                                   CollectiveNode(CollectiveType::kAllReduce, 1024),
                                   {.kind = NodeKind::kCompute, .duration = 200}},
                                  {{}, {0}, {1}, {2}}));
  names_.of_nodes[job.ranks[1].program.get()] = {0, 1, UINT32_MAX, 1};
  const auto study = StudyStragglers(Machine(2), job, names_, {});
  ASSERT_TRUE(study);
  EXPECT_EQ(study->kinds, 1u);
  ASSERT_EQ(study->ranks.size(), 1u);
  EXPECT_EQ(study->ranks[0].what, "rank 1");
}

TEST_F(Stragglers, RanksThatDoOtherThingsAreNotCompared) {
  SimWorkload job = WorkloadOf({{1000, 100}, {1000, 100}});
  job.ranks[1] = RankOf(ProgramOf({{.kind = NodeKind::kCompute, .duration = 1000},
                                   CollectiveNode(CollectiveType::kAllReduce, 1024)},
                                  {{}, {0}}));
  names_.of_nodes[job.ranks[1].program.get()] = {0, UINT32_MAX};
  const auto study = StudyStragglers(Machine(2), job, names_, {});
  ASSERT_FALSE(study);
  EXPECT_NE(study.error().message.find("no two ranks that do the same"), std::string::npos);
}

}  // namespace
}  // namespace etude

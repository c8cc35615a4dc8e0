#include "src/sim/stragglers/remedies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/sim/stragglers/straggling.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

SimMachine RingOf(int32_t ranks) {
  return MachineOf({{.npus = ranks, .bandwidth = 1, .latency = 500}}, CollectiveAlgorithm::kRing);
}

int64_t StepOf(const SimWorkload& workload) {
  const SimResult result =
      Simulate(RingOf(static_cast<int32_t>(workload.ranks.size())), workload).value();
  int64_t step = 0;
  for (const SimRankResult& rank : result.ranks) step = std::max(step, rank.end);
  return step;
}

using Befores = std::vector<std::vector<uint32_t>>;

// Adds a rank whose computations have these names, and whose nodes follow each other unless
// `befores` are given.
void AddRank(std::vector<SimNode> nodes, const std::vector<uint32_t>& of_nodes,
             std::vector<int64_t> peers, SimWorkload& workload, WorkNames& names,
             Befores befores = {}) {
  for (auto i = static_cast<uint32_t>(befores.size()); i < nodes.size(); ++i) {
    befores.push_back(i == 0 ? std::vector<uint32_t>() : std::vector{i - 1});
  }
  workload.ranks.push_back(RankOf(ProgramOf(std::move(nodes), befores), {}, std::move(peers)));
  names.of_nodes[workload.ranks.back().program.get()] = of_nodes;
}

SimNode Compute(int64_t time, int64_t flops = 0) {
  return {.kind = NodeKind::kCompute, .duration = time, .flops = flops};
}
SimNode StageMessage(NodeKind kind, uint32_t peer, int64_t tag) {
  return {.kind = kind, .peer = peer, .bytes = 64, .tag = tag};
}

// A pipeline of two ranks and two micro-batches, with the time of a micro-batch on each.
SimWorkload PipelineOf(int64_t first, int64_t last, WorkNames& names) {
  SimWorkload workload;
  constexpr uint32_t kNone = WorkNames::kNoName;
  AddRank({Compute(first), StageMessage(NodeKind::kSend, 0, 1), Compute(first),
           StageMessage(NodeKind::kSend, 0, 2)},
          {0, kNone, 0, kNone}, {1}, workload, names, Befores{{}, {0}, {0}, {2}});
  AddRank({StageMessage(NodeKind::kRecv, 0, 1), Compute(last), StageMessage(NodeKind::kRecv, 0, 2),
           Compute(last)},
          {kNone, 1, kNone, 1}, {0}, workload, names, Befores{{}, {0}, {}, {1, 2}});
  return workload;
}

TEST(Remedies, StagesAreBalanced) {
  WorkNames names{.names = {{.text = "layer"}, {.text = "loss"}}, .of_nodes = {}};
  const SimWorkload job = PipelineOf(1000, 3000, names);
  const auto study = StudyStragglers(RingOf(2), job, names, {});
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->kinds, 2u);
  EXPECT_TRUE(study->stages.empty()) << "no rank differs from those that do the same";
  ASSERT_EQ(study->remedies.size(), 2u);
  EXPECT_EQ(study->remedies[0].what, "stage re-balance");
  EXPECT_EQ(study->remedies[0].step, StepOf(PipelineOf(2000, 2000, names)));
  EXPECT_EQ(StepOf(job) - *study->remedies[0].step, 7000 - 6000);
  EXPECT_TRUE(
      study->remedies[0].basis.starts_with("stage 1 takes 50.0 % more than the mean of 2 stages"))
      << study->remedies[0].basis;
  EXPECT_EQ(study->remedies[1].what, "sequence re-balance");
  EXPECT_FALSE(study->remedies[1].step.has_value()) << "without FLOPs";
}

TEST(Remedies, SequencesAreBalancedByTheirFlops) {
  WorkNames names{.names = {{.text = "matmul"}, {.text = "gelu"}}, .of_nodes = {}};
  const auto job_of = [&](std::vector<std::pair<int64_t, int64_t>> times) {
    SimWorkload workload;
    for (size_t i = 0; i < times.size(); ++i) {
      AddRank({Compute(times[i].first, i == 0 ? 10 : 30), Compute(times[i].second, 5),
               CollectiveNode(CollectiveType::kAllReduce, 1024)},
              {0, 1, WorkNames::kNoName}, {}, workload, names);
    }
    return workload;
  };
  const SimWorkload job = job_of({{1000, 200}, {1600, 300}});
  const auto study = StudyStragglers(RingOf(2), job, names, {});
  ASSERT_TRUE(study) << study.error().message;
  ASSERT_EQ(study->remedies.size(), 1u);
  EXPECT_EQ(study->remedies[0].what, "sequence re-balance");
  EXPECT_EQ(study->remedies[0].step, StepOf(job_of({{1300, 200}, {1300, 300}})));
  EXPECT_EQ(StepOf(job) - *study->remedies[0].step, 300);
}

TEST(Remedies, PausesAreAligned) {
  WorkNames names{.names = {{.text = "matmul"}, {.text = "between", .is_label = true}},
                  .of_nodes = {}};
  constexpr uint32_t kNone = WorkNames::kNoName;
  const auto job_of = [&](std::vector<std::pair<int64_t, int64_t>> pauses) {
    SimWorkload workload;
    for (const auto& [first, second] : pauses) {
      AddRank({Compute(1000, 1), Compute(first), CollectiveNode(CollectiveType::kAllReduce, 64),
               Compute(1000, 1), Compute(second), CollectiveNode(CollectiveType::kAllReduce, 64)},
              {0, 1, kNone, 0, 1, kNone}, {}, workload, names);
    }
    return workload;
  };
  const SimWorkload job = job_of({{10, 12}, {410, 12}, {10, 312}});
  const auto study = StudyStragglers(RingOf(3), job, names, {});
  ASSERT_TRUE(study) << study.error().message;
  ASSERT_EQ(study->remedies.size(), 1u);
  EXPECT_EQ(study->remedies[0].what, "planned garbage collection");
  EXPECT_EQ(study->remedies[0].step, StepOf(job_of({{10, 12}, {10, 12}, {10, 12}})) + 400);
  EXPECT_EQ(StepOf(job) - *study->remedies[0].step, 300);
  EXPECT_TRUE(study->remedies[0].basis.starts_with("pauses of the host on 2 of 3 ranks"));
  // Shorter ones are noise.
  const auto quiet = StudyStragglers(RingOf(3), job_of({{10, 12}, {25, 12}, {10, 12}}), names, {});
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(quiet->remedies.empty());
}

}  // namespace
}  // namespace etude

// Pipelines by schedule on a simulated network have the bubbles of the closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"
#include "src/sim/testing/sim_testing.h"
#include "src/synth/job/pipeline_schedule.h"

namespace etude {
namespace {

constexpr int64_t kUnit = 1'000'000;  // ns, of a forward pass of all chunks of a stage

// Chunk c of stage s is number c · stages + s in the model's order.
class StageProgram {
 public:
  StageProgram(const PipelinePlan& plan, int64_t stage) : plan_(plan), stage_(stage) {
    for (int64_t peer = 0; peer < plan.stages; ++peer) peers_.push_back(peer);
    for (const StageStep& step : StageOrder(plan, stage)) Add(step);
  }
  SimRank Take() {
    return testing_sim::RankOf(testing_sim::ProgramOf(nodes_, befores_), {}, peers_);
  }

 private:
  bool IsForward(const StageStep& step) const { return step.pass == StagePass::kForward; }

  int64_t CostOf(StagePass pass) const {
    const int64_t forward = kUnit / plan_.chunks;
    return pass == StagePass::kBackward ? 2 * forward : forward;
  }

  void Message(NodeKind kind, const StageStep& step, int64_t from, int64_t to,
               std::vector<uint32_t> befores) {
    const int64_t other = (kind == NodeKind::kSend ? to : from) % plan_.stages;
    // Messages between two places of the model are told apart by tag.
    const int64_t tag = (step.micro_batch * 64 + from) * 64 + to;
    nodes_.push_back({.kind = kind, .peer = static_cast<uint32_t>(other), .bytes = 0, .tag = tag});
    befores_.push_back(std::move(befores));
  }

  void Add(const StageStep& step) {
    const int64_t here = step.chunk * plan_.stages + stage_;
    const int64_t last = plan_.stages * plan_.chunks - 1;
    const int64_t before = IsForward(step) ? here - 1 : here + 1;
    const int64_t after = IsForward(step) ? here + 1 : here - 1;
    const bool hands_on = step.pass != StagePass::kWeightGradient;
    std::vector<uint32_t> befores;
    if (compute_) befores.push_back(*compute_);
    if (hands_on && before >= 0 && before <= last && plan_.stages > 1) {
      Message(NodeKind::kRecv, step, before, here, {});
      befores.push_back(static_cast<uint32_t>(nodes_.size() - 1));
    }
    nodes_.push_back({.kind = NodeKind::kCompute, .duration = CostOf(step.pass)});
    befores_.push_back(std::move(befores));
    compute_ = static_cast<uint32_t>(nodes_.size() - 1);
    if (hands_on && after >= 0 && after <= last && plan_.stages > 1) {
      Message(NodeKind::kSend, step, here, after, {*compute_});
    }
  }

  const PipelinePlan& plan_;
  const int64_t stage_;
  std::vector<SimNode> nodes_;
  std::vector<std::vector<uint32_t>> befores_;
  std::vector<int64_t> peers_;
  std::optional<uint32_t> compute_;
};

SimMachine MachineWith(int64_t stages) {
  SimMachine machine;
  const std::string dims =
      NetworkOfDims("FullyConnected(" + std::to_string(stages) + "):1000GB/s,0ns").value();
  EXPECT_TRUE(UseGraph(ParseNetworkGraph(dims, "net").value(), {}, "net", machine));
  return machine;
}

TEST(ScheduleBubble, IsThatOfTheClosedFormOnASimulatedNetwork) {
  const std::pair<PipelineSchedule, int64_t> kinds[] = {{PipelineSchedule::kGpipe, 1},
                                                        {PipelineSchedule::k1F1B, 1},
                                                        {PipelineSchedule::kInterleaved, 2},
                                                        {PipelineSchedule::kZeroBubble, 1}};
  for (const auto& [schedule, chunks] : kinds) {
    for (const int64_t stages : {2, 4}) {
      for (const int64_t micro_batches : {4, 8, 16}) {
        const PipelinePlan plan{.schedule = schedule,
                                .stages = stages,
                                .micro_batches = micro_batches,
                                .chunks = chunks};
        ASSERT_TRUE(CheckPipeline(plan));
        std::vector<SimRank> ranks;
        for (int64_t stage = 0; stage < stages; ++stage) {
          ranks.push_back(StageProgram(plan, stage).Take());
        }
        const auto result = Simulate(MachineWith(stages), {.ranks = std::move(ranks)});
        ASSERT_TRUE(result) << result.error().message;
        int64_t step = 0;
        for (const SimRankResult& rank : result->ranks) {
          EXPECT_TRUE(rank.finished);
          step = std::max(step, rank.end);
        }
        const auto work = static_cast<double>(3 * micro_batches * kUnit);
        const double bubble = 1 - work / static_cast<double>(step);
        EXPECT_NEAR(bubble, BubbleShare(plan).value(), 1e-6)
            << static_cast<int>(schedule) << ": " << stages << " stages, " << micro_batches;
      }
    }
  }
}

}  // namespace
}  // namespace etude

#include "src/sim/stragglers/pipeline_stages.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::ProgramOf;
using testing_sim::RankOf;

// The messages of a rank, in order: to a partner (positive: rank + 1), or from one (negative).
using Messages = std::vector<int>;

PipelineStages StagesOf(const std::vector<Messages>& ranks) {
  SimWorkload workload;
  for (const Messages& messages : ranks) {
    std::vector<SimNode> nodes;
    std::vector<int64_t> peers;
    for (const int message : messages) {
      nodes.push_back({.kind = message > 0 ? NodeKind::kSend : NodeKind::kRecv,
                       .peer = static_cast<uint32_t>(peers.size())});
      peers.push_back((message > 0 ? message : -message) - 1);
    }
    const std::vector<std::vector<uint32_t>> befores(nodes.size());
    workload.ranks.push_back(RankOf(ProgramOf(std::move(nodes), befores), {}, std::move(peers)));
  }
  return FindPipelineStages(workload);
}

TEST(PipelineStages, AreFoundByTheFirstMessages) {
  // Three stages with two replicas; gradients come back.
  const Messages first[] = {{3, -3}, {4, -4}};
  const Messages middle[] = {{-1, 5, -5, 1}, {-2, 6, -6, 2}};
  const Messages last[] = {{-3, 3}, {-4, 4}};
  EXPECT_EQ(StagesOf({first[0], first[1], middle[0], middle[1], last[0], last[1]}),
            (PipelineStages{{0, 1}, {2, 3}, {4, 5}}));
  // Several chunks of layers: the last stage sends to the first one.
  EXPECT_EQ(StagesOf({{2, -3, 2}, {-1, 3, -1, 3}, {-2, 1, -2}}), (PipelineStages{{0}, {1}, {2}}));
}

TEST(PipelineStages, OtherMessagesAreNoPipeline) {
  EXPECT_TRUE(StagesOf({{}, {}}).empty());
  // A ring, in which each rank sends first.
  EXPECT_TRUE(StagesOf({{2, -3}, {3, -1}, {1, -2}}).empty());
  // A rank without messages.
  EXPECT_TRUE(StagesOf({{2}, {-1}, {}}).empty());
}

}  // namespace
}  // namespace etude

#include "src/sim/result/diagnosis.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace etude {
namespace {

// Makes a rank whose nodes run one after the other.
SimRank ChainedRank(const std::vector<SimNode>& nodes, std::vector<int64_t> peers = {}) {
  SimProgram program;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    program.nodes.push_back(nodes[i]);
    program.origin.push_back(NodeId::FromIndex(i));
    program.source_ids.push_back(10 + i);
    program.waits.push_back(i == 0 ? 0 : 1);
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  program.children = Csr<uint32_t>::Build(
      nodes.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return {.program = std::make_shared<const SimProgram>(std::move(program)),
          .groups = {},
          .peers = std::move(peers)};
}

SimNode ReceiveOf(int64_t bytes) { return {.kind = NodeKind::kRecv, .peer = 0, .bytes = bytes}; }
SimNode SendOf(int64_t bytes) { return {.kind = NodeKind::kSend, .peer = 0, .bytes = bytes}; }
SimNode GatherOf(int64_t bytes) {
  return {.kind = NodeKind::kCollective, .collective = CollectiveType::kAllGather, .bytes = bytes};
}

// Links of 1 byte/ns without latency.
std::vector<std::string> LinesOf(std::vector<SimRank> ranks) {
  SimMachine machine;
  machine.dims = {{.npus = static_cast<int64_t>(ranks.size()), .bandwidth = 1e9 / 1073741824.0}};
  machine.system.algorithms[CollectiveType::kAllGather].resize(1);
  const SimWorkload workload{.ranks = std::move(ranks)};
  const SimResult result = Simulate(machine, workload).value();
  const Arrivals arrivals(machine, workload, result);
  const auto diagnosis = Diagnose(workload, result, arrivals);
  if (!diagnosis) return {};
  return ToLines(*diagnosis, [](int64_t rank) { return fmt::format("rank {}", rank); });
}

using Lines = std::vector<std::string>;

TEST(Diagnosis, NobodyWaits) {
  EXPECT_EQ(LinesOf({ChainedRank({SendOf(8)}, {1}), ChainedRank({ReceiveOf(8)}, {0})}), Lines());
}

TEST(Diagnosis, ForOneWhoIsDone) {
  EXPECT_EQ(
      LinesOf({ChainedRank({{.duration = 5}, ReceiveOf(8)}, {1}), ChainedRank({{.duration = 3}})}),
      Lines({"rank 0: node 11 has waited since 5 ns for 8 bytes from rank 1 with tag 0: rank 1 has "
             "not reached it",
             "rank 1 has finished and has no more nodes"}));
}

TEST(Diagnosis, ForAnotherSize) {
  EXPECT_EQ(LinesOf({ChainedRank({ReceiveOf(8)}, {1}), ChainedRank({SendOf(16)}, {0})}),
            Lines({"rank 0: node 10 has waited since 0 ns for 8 bytes from rank 1 with tag 0 (rank "
                   "1 has sent 16 bytes with tag 0 in its node 10): rank 1 has not reached it",
                   "rank 1 has finished and has no more nodes"}));
}

TEST(Diagnosis, ForEachOther) {
  EXPECT_EQ(LinesOf({ChainedRank({ReceiveOf(8), SendOf(8)}, {1}),
                     ChainedRank({ReceiveOf(8), SendOf(8)}, {0})}),
            Lines({"rank 0: node 10 has waited since 0 ns for 8 bytes from rank 1 with tag 0: rank "
                   "1 has not reached it",
                   "rank 1: node 10 has waited since 0 ns for 8 bytes from rank 0 with tag 0: rank "
                   "0 has not reached it",
                   "a cycle: rank 0 also waits, see above"}));
}

// Rank 2 calls no collective at all.
TEST(Diagnosis, ForACollective) {
  EXPECT_EQ(LinesOf({ChainedRank({GatherOf(8)}), ChainedRank({GatherOf(8)}),
                     ChainedRank({{.duration = 3}})}),
            Lines({"rank 0: node 10 has waited since 0 ns for all_gather of 8 bytes: rank 2 has "
                   "not reached it",
                   "rank 2 has finished and has no more nodes"}));
}

TEST(Diagnosis, CollectivesOfOtherSizes) {
  EXPECT_EQ(LinesOf({ChainedRank({GatherOf(8)}), ChainedRank({GatherOf(16)})}),
            Lines({"rank 0: node 10 has waited since 0 ns for all_gather of 8 bytes (rank 1 "
                   "reached it with 16 bytes in its node 10)",
                   "all ranks that take part have reached it, but their operations do not match"}));
}

}  // namespace
}  // namespace etude

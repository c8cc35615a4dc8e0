#include "src/sim/plan/plan_runs.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"
#include "src/sim/plan/collective_plan.h"
#include "src/sim/plan/plan_program.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

std::string PlanOpText(const std::string& name, const std::string& rest = "") {
  return fmt::format(R"({{"name": "{}"{}{}}})", name, rest.empty() ? "" : ", ", rest);
}
std::string OnChannel(const std::string& name, const std::string& type = "memory") {
  return PlanOpText(name, fmt::format(R"("channel_ids": [0], "channel_type": "{}")", type));
}
std::string ChunkText(int64_t index, bool remote) {
  return fmt::format(R"({{{}, "index": {}, "size": 1}})",
                     remote ? R"("buffer_id": 0)" : R"("type": "i")", index);
}
std::string MoveText(const std::string& name, const std::vector<std::string>& from,
                     const std::vector<std::string>& to, const std::string& type = "memory") {
  return PlanOpText(name, fmt::format(R"("src_buff": [{}], "dst_buff": [{}], "channel_ids": [0], )"
                                      R"("channel_type": "{}")",
                                      fmt::join(from, ", "), fmt::join(to, ", "), type));
}

// A thread block with one channel to the other of two GPUs, and one remote buffer.
std::string BlockText(int64_t id, const std::vector<std::string>& ops,
                      const std::string& type = "memory") {
  return fmt::format(
      R"({{"id": {}, "ops": [{}], "channels": [{{"channel_type": "{}", "channel_ids": [{}]}}], )"
      R"("remote_buffer_refs": [{{"access_channel_type": "{}", "remote_buffer_ids": [0]}}]}})",
      id, fmt::join(ops, ", "), type, id, type);
}
// Two GPUs with as many channels as thread blocks.
std::string PlanText(const std::string& collective, int64_t chunks,
                     const std::vector<std::vector<std::string>>& blocks,
                     const std::string& type = "memory", const std::string& semaphores = "") {
  std::vector<std::string> gpus;
  for (size_t gpu = 0; gpu < 2; ++gpu) {
    const std::vector<int64_t> ends(blocks[gpu].size(), static_cast<int64_t>(1 - gpu));
    gpus.push_back(fmt::format(
        R"({{"id": {}, "input_chunks": {}, "output_chunks": 0, "scratch_chunks": 0, )"
        R"("threadblocks": [{}], "channels": [{{"channel_type": "{}", "connected_to": {}}}], )"
        R"("remote_buffers": [{{"rank": {}, "type": "i"}}], "semaphores": [{}]}})",
        gpu, chunks, fmt::join(blocks[gpu], ", "), type, ends, 1 - gpu, semaphores));
  }
  return fmt::format(R"({{"name": "test", "collective": "{}", "gpus": [{}]}})", collective,
                     fmt::join(gpus, ", "));
}

SimMachine PlanMachine(const std::string& network, const std::string& plan) {
  SimMachine machine;
  auto graph = ParseNetworkGraph(*NetworkOfDims(network), "network");
  EXPECT_TRUE(UseGraph(*std::move(graph), {}, "network", machine));
  auto parsed = ParseCollectivePlan(plan, "p.json");
  EXPECT_TRUE(parsed) << parsed.error().message;
  if (parsed) {
    const CollectiveType type = parsed->type;
    machine.system.plans[type] = std::make_shared<const CollectivePlan>(*std::move(parsed));
  }
  return machine;
}

// Returns the ends of a collective of all ranks; its error as text.
std::vector<int64_t> PlanEnds(const SimMachine& machine, CollectiveType type, int64_t bytes,
                              std::string* error = nullptr) {
  SimWorkload workload;
  for (int64_t i = 0; i < machine.npus(); ++i) {
    workload.ranks.push_back(RankOf(ProgramOf({CollectiveNode(type, bytes)}, {{}})));
  }
  const auto result = Simulate(machine, workload);
  if (!result) {
    if (error != nullptr) *error = result.error().message;
    return {};
  }
  std::vector<int64_t> ends;
  for (const SimRankResult& rank : result->ranks) {
    ends.push_back(rank.ends[0]);
    const SimCollectiveEnd& end = rank.collectives[0];
    EXPECT_EQ(end.latency + end.transfer + end.handling + end.queue, rank.ends[0]);
  }
  return ends;
}

std::string AllGatherPlan() {
  std::vector<std::vector<std::string>> blocks;
  for (int64_t gpu = 0; gpu < 2; ++gpu) {
    blocks.push_back({BlockText(0, {OnChannel("signal"), OnChannel("wait"), PlanOpText("nop"),
                                    MoveText("put", {ChunkText(0, false)}, {ChunkText(0, true)}),
                                    PlanOpText("nop"), OnChannel("signal"), OnChannel("wait")})});
  }
  return PlanText("allgather", 1, blocks);
}

TEST(PlanRuns, SignalsAndPutsAreMessages) {
  // 500 ns for the signals, 500 and 2,000 ns for 100,000 bytes, and 500 ns for the signals.
  const SimMachine machine = PlanMachine("Ring(2):50GB/s,500ns", AllGatherPlan());
  EXPECT_EQ(PlanEnds(machine, CollectiveType::kAllGather, 100'000),
            (std::vector<int64_t>{3500, 3500}));
}

TEST(PlanRuns, ReadsAreRequestedAndAdded) {
  std::vector<std::vector<std::string>> blocks;
  for (int64_t gpu = 0; gpu < 2; ++gpu) {
    blocks.push_back({BlockText(0, {OnChannel("signal"), OnChannel("wait"),
                                    MoveText("rres", {ChunkText(gpu, false), ChunkText(gpu, true)},
                                             {ChunkText(gpu, false), ChunkText(gpu, true)}),
                                    OnChannel("signal"), OnChannel("wait")})});
  }
  SimMachine machine = PlanMachine("Ring(2):50GB/s,500ns", PlanText("allreduce", 2, blocks));
  // Signals, the request, 100,000 bytes, the sum to the other GPU, signals.
  EXPECT_EQ(PlanEnds(machine, CollectiveType::kAllReduce, 200'000),
            (std::vector<int64_t>(2, 500 + 500 + 2500 + 2500 + 500)));
  // Three accesses of 100,000 bytes.
  machine.system.memory_bandwidth = 100;
  EXPECT_EQ(PlanEnds(machine, CollectiveType::kAllReduce, 200'000),
            (std::vector<int64_t>(2, 6500 + 3000)));
}

TEST(PlanRuns, SignalsFollowChunksOfPorts) {
  std::vector<std::vector<std::string>> blocks;
  for (int64_t gpu = 0; gpu < 2; ++gpu) {
    blocks.push_back(
        {BlockText(0,
                   {MoveText("pws", {ChunkText(0, false)}, {ChunkText(0, true)}, "port"),
                    OnChannel("wait", "port"), OnChannel("flush", "port")},
                   "port")});
  }
  const SimMachine machine =
      PlanMachine("Ring(2):50GB/s,500ns", PlanText("allgather", 1, blocks, "port"));
  EXPECT_EQ(PlanEnds(machine, CollectiveType::kAllGather, 100'000),
            (std::vector<int64_t>{2500, 2500}));
}

TEST(PlanRuns, ThreadBlocksWaitForEachOther) {
  // The second block puts its chunk when the first one has; both have a barrier at the end.
  const std::string barrier = PlanOpText("barrier", R"("barrier_id": 0, "num_threadblocks": 2)");
  const std::string release = PlanOpText("sem_release", R"("semaphore_ids": [0])");
  const std::string acquire = PlanOpText("sem_acquire", R"("semaphore_ids": [0])");
  const std::string put = MoveText("put", {ChunkText(0, false)}, {ChunkText(0, true)});
  const std::vector<std::string> both = {BlockText(0, {put, release, barrier}),
                                         BlockText(1, {acquire, put, barrier})};
  const SimMachine machine =
      PlanMachine("Ring(2):50GB/s,500ns",
                  PlanText("alltoall", 2, {both, both}, "memory", R"({"init_value": 0})"));
  EXPECT_EQ(PlanEnds(machine, CollectiveType::kAllToAll, 200'000),
            (std::vector<int64_t>{5000, 5000}));
}

TEST(PlanRuns, SwitchesAddChunks) {
  std::string gpus;
  for (int64_t gpu = 0; gpu < 4; ++gpu) {
    gpus += fmt::format(
        R"({}{{"id": {}, "input_chunks": 4, "output_chunks": 0, "threadblocks": [{{"id": 0, )"
        R"("ops": [{{"name": "glres", "channel_type": "switch", )"
        R"("src_buff": [{{"switch_channel_id": 0, "index": {}, "size": 1}}], )"
        R"("dst_buff": [{{"switch_channel_id": 0, "index": {}, "size": 1}}]}}], )"
        R"("channels": [{{"buff": "i", "channel_type": "switch", "channel_ids": [0]}}]}}], )"
        R"("channels": [{{"type": "switch", "buff": "i", "rank_groups": )"
        R"([{{"size": 4, "ranks": [0, 1, 2, 3]}}]}}]}})",
        gpu == 0 ? "" : ", ", gpu, gpu, gpu);
  }
  const std::string plan =
      fmt::format(R"({{"name": "nvls", "collective": "allreduce", "gpus": [{}]}})", gpus);
  // Each link carries all four chunks of 100,000 bytes, in each direction.
  EXPECT_EQ(
      PlanEnds(PlanMachine("Switch(4):50GB/s,250ns", plan), CollectiveType::kAllReduce, 400'000),
      (std::vector<int64_t>(4, 500 + 8000)));
  std::string error;
  PlanEnds(PlanMachine("Ring(4):50GB/s,250ns", plan), CollectiveType::kAllReduce, 400'000, &error);
  EXPECT_EQ(error,
            "rank 0: node 0: found no switch that connects the 4 ranks of the collective in "
            "Ring(4), expected one for a collective in the network");
}

TEST(PlanRuns, GroupsOfItsSizeUseAPlan) {
  SimMachine machine = PlanMachine("FullyConnected(4):50GB/s,500ns", AllGatherPlan());
  SimWorkload workload{.groups = {{1, {0, 2}}, {2, {1, 3}}}};
  for (int64_t rank = 0; rank < 4; ++rank) {
    // Twice, so that two runs of a plan overlap if a rank is early.
    workload.ranks.push_back(
        RankOf(ProgramOf({{.duration = 100 * (rank + 1)},
                          CollectiveNode(CollectiveType::kAllGather, 100'000, 1),
                          CollectiveNode(CollectiveType::kAllGather, 100'000, 1)},
                         {{}, {0}, {1}}),
               {1 + rank % 2}));
  }
  const auto result = Simulate(machine, workload);
  ASSERT_TRUE(result) << result.error().message;
  // Rank 2 begins at 300, gets the signal at 600, and has put its chunk at 3,100.
  EXPECT_EQ(result->OfRank(0).ends[1], 3100 + 500);
  EXPECT_EQ(result->OfRank(3).ends[1], 400 + 3500);
  EXPECT_EQ(result->OfRank(3).ends[2], 400 + 7000);
  // A plan of two GPUs is no algorithm for four ranks.
  std::string error;
  PlanEnds(machine, CollectiveType::kAllGather, 100'000, &error);
  EXPECT_EQ(error,
            "rank 0: node 0: found all_gather of 4 ranks and 100000 bytes, which its plan and no "
            "algorithm is for");
  machine.system.algorithms[CollectiveType::kAllGather] = {{}};
  EXPECT_EQ(PlanEnds(machine, CollectiveType::kAllGather, 100'000).size(), 4U);
}

TEST(PlanProgram, PipelinesAreUnrolled) {
  const std::string copy = MoveText("put", {ChunkText(0, false)}, {ChunkText(0, true)});
  const std::string pipeline = PlanOpText(
      "pipeline", fmt::format(R"("iter_context": {{"unit_size": 30000, "num_chunks": 1}})"
                              R"(, "ops": [{}])",
                              copy));
  const auto plan = ParseCollectivePlan(
      PlanText("allgather", 1, {{BlockText(0, {pipeline})}, {BlockText(0, {pipeline})}}), "p.json");
  ASSERT_TRUE(plan) << plan.error().message;
  const auto program = MakePlanProgram(*plan, 100'000);
  ASSERT_TRUE(program) << program.error().message;
  std::vector<int64_t> bytes;
  for (const PlanAction& action : program->gpus[1][0]) bytes.push_back(action.writes[0].bytes);
  EXPECT_EQ(bytes, (std::vector<int64_t>{30'000, 30'000, 30'000, 10'000}));
}

TEST(PlanProgram, DeadlocksNameTheOperation) {
  const auto error = [](const std::vector<std::string>& ops) {
    const auto plan = ParseCollectivePlan(
        PlanText("allgather", 1, {{BlockText(0, {OnChannel("signal")})}, {BlockText(0, ops)}},
                 "memory", R"({"init_value": 0})"),
        "p.json");
    const auto program = MakePlanProgram(*plan, 1000);
    return program ? std::string() : program.error().message;
  };
  EXPECT_EQ(error({OnChannel("wait")}), "");
  EXPECT_EQ(
      error({OnChannel("wait"), PlanOpText("nop"), OnChannel("wait")}),
      "p.json: GPU 1, thread block 0, operation 2 (wait): waits forever for a signal of GPU 0");
  EXPECT_EQ(error({PlanOpText("sem_acquire", R"("semaphore_ids": [0])")}),
            "p.json: GPU 1, thread block 0, operation 0 (sem_acquire): waits forever for semaphore "
            "0");
  EXPECT_EQ(error({PlanOpText("barrier", R"("barrier_id": 3, "num_threadblocks": 2)")}),
            "p.json: GPU 1, thread block 0, operation 0 (barrier): waits forever for 2 thread "
            "blocks at barrier 3");
}

TEST(CollectivePlan, ErrorsHaveTheirPlace) {
  const auto error = [](const std::vector<std::string>& ops) {
    const auto plan = ParseCollectivePlan(
        PlanText("allgather", 1, {{BlockText(0, {})}, {BlockText(0, ops)}}), "p.json");
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_EQ(error({PlanOpText("nop"), PlanOpText("ppkt")}),
            "p.json: GPU 1, thread block 0, operation 1 (ppkt): packets (protocol LL) are not "
            "simulated");
  EXPECT_EQ(error({PlanOpText("signall")}),
            "p.json: GPU 1, thread block 0, operation 0 (signall): unknown operation; did you mean "
            "'signal'?");
  EXPECT_EQ(error({PlanOpText("wait", R"("channel_ids": [1], "channel_type": "memory")")}),
            "p.json: GPU 1, thread block 0, operation 0 (wait): channel_ids: found 1, the thread "
            "block has 1 memory channels");
  EXPECT_EQ(error({MoveText("put", {}, {ChunkText(0, true)})}),
            "p.json: GPU 1, thread block 0, operation 0 (put): missing 'src_buff' or 'dst_buff'");
  const auto chunk = [](const std::string& buffer, int64_t index, int64_t size) {
    return fmt::format(R"({{{}, "index": {}, "size": {}}})", buffer, index, size);
  };
  const std::string own = R"("type": "i")";
  const std::string remote = R"("buffer_id": 0)";
  EXPECT_EQ(error({MoveText("put", {chunk(own, 0, 2)}, {chunk(remote, 0, 1)})}),
            "p.json: GPU 1, thread block 0, operation 0 (put): src_buff: found index 0 and size 2, "
            "the input of GPU 1 has 1 chunks");
  EXPECT_EQ(error({MoveText("put", {chunk(own, 0, 1)}, {chunk(remote, 1, 1)})}),
            "p.json: GPU 1, thread block 0, operation 0 (put): dst_buff: found index 1 and size 1, "
            "the input of GPU 0 has 1 chunks");
  EXPECT_EQ(error({MoveText("copy", {chunk(own, 0, 1)}, {chunk(R"("type": "s")", 0, 1)})}),
            "p.json: GPU 1, thread block 0, operation 0 (copy): dst_buff: found index 0 and size "
            "1, the scratch of GPU 1 has 0 chunks");
  EXPECT_EQ(error({MoveText("copy", {chunk(own, 0, 1)}, {chunk(R"("type": "x")", 0, 1)})}),
            "p.json: GPU 1, thread block 0, operation 0 (copy): type: found 'x', expected i "
            "(input), o (output) or s (scratch)");
  EXPECT_EQ(error({MoveText("put", {chunk(own, 0, 1)}, {chunk(remote, 0, 0)})}),
            "p.json: GPU 1, thread block 0, operation 0 (put): found size 1 in 'src_buff' and 0 in "
            "'dst_buff', expected the same size");
  EXPECT_EQ(error({MoveText("rre", {chunk(own, 0, 1), chunk(remote, 0, 0)}, {chunk(own, 0, 1)})}),
            "p.json: GPU 1, thread block 0, operation 0 (rre): found size 0 in 'src_buff' and 1 in "
            "'dst_buff', expected the same size");
  EXPECT_EQ(error({MoveText("put", {chunk(own, 0, 1), chunk(own, 0, 1)}, {chunk(remote, 0, 1)})}),
            "p.json: GPU 1, thread block 0, operation 0 (put): found 2 entries of 'src_buff' and 1 "
            "of 'dst_buff', expected the same number");
  EXPECT_EQ(error({PlanOpText("gstore", R"("src_buff": [{"type": "i", "index": 0, "size": 1}], )"
                                        R"("dst_buff": [{"switch_channel_id": 0, "index": 0, )"
                                        R"("size": 1}])")}),
            "p.json: GPU 1, thread block 0, operation 0 (gstore): dst_buff: switch_channel_id: "
            "found 0, the thread block has 0 switch channels");
  const auto of = [](const std::string& text) {
    return ParseCollectivePlan(text, "p.json").error().message;
  };
  const auto gpus = [&](const std::string& rest) {
    return of(R"({"name": "x", "collective": "allreduce", "gpus": [{"id": 0, "input_chunks": 1, )"
              R"("output_chunks": 0, "threadblocks": [], )" +
              rest +
              R"(}, {"id": 1, "input_chunks": 1, "output_chunks": 0, "threadblocks": []}]})");
  };
  EXPECT_EQ(gpus(R"("remote_buffers": [{"rank": 0, "type": "i"}])"),
            "p.json: GPU 0: remote_buffers: rank: found 0, the GPU itself, expected another one");
  EXPECT_EQ(gpus(R"("channels": [{"channel_type": "memory", "connected_to": [0]}])"),
            "p.json: GPU 0: connected_to: found 0, the GPU itself, expected another one");
  EXPECT_EQ(of(R"({"name": "x", "collective": "allreduce", "min_message_size": 8, )"
               R"("max_message_size": 4})"),
            "p.json: min_message_size: found 8, expected max_message_size (4) or less");
  EXPECT_EQ(of("[]"), "p.json: found no object, expected an execution plan of MSCCL++");
  EXPECT_EQ(of(R"({"name": "x", "collective": "scan"})"),
            "p.json: collective: found 'scan', expected allreduce, allgather, reducescatter, "
            "broadcast or alltoall");
  EXPECT_EQ(
      of(R"({"name": "x", "collective": "allreduce", "gpus": [{"id": 0, "inputChunks": 8}]})"),
      "p.json: GPU 0: found 'inputChunks' of an older form, expected 'input_chunks'");
}

}  // namespace
}  // namespace etude

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/program/workload.h"
#include "src/synth/dlrm/dlrm_job.h"
#include "src/synth/dlrm/dlrm_model.h"
#include "src/synth/network/network_job.h"
#include "src/synth/network/network_presets.h"
#include "src/synth/transformer/transformer_job.h"

namespace etude {
namespace {

constexpr int64_t kRanks = 8;

SimMachine MachineWith(std::vector<NetworkDim> dims, CollectiveAlgorithm algorithm) {
  SimMachine machine{.dims = std::move(dims)};
  machine.system = {
      .active_chunks = 2, .splits = 1, .bandwidth_aware = true, .memory_bandwidth = 1000};
  for (const CollectiveType type : {CollectiveType::kAllReduce, CollectiveType::kAllGather,
                                    CollectiveType::kReduceScatter, CollectiveType::kAllToAll}) {
    machine.system.algorithms[type].assign(machine.dims.size(), {.algorithm = algorithm});
  }
  return machine;
}

std::vector<SimMachine> Machines() {
  const NetworkDim ring{.shape = NetworkShape::kRing, .npus = 8, .bandwidth = 50, .latency = 300};
  const NetworkDim all{
      .shape = NetworkShape::kFullyConnected, .npus = 2, .bandwidth = 200, .latency = 100};
  const NetworkDim last{
      .shape = NetworkShape::kSwitch, .npus = 2, .bandwidth = 25, .latency = 1000};
  NetworkDim four = ring;
  four.npus = 4;
  return {MachineWith({ring}, CollectiveAlgorithm::kDirect),
          MachineWith({all, four}, CollectiveAlgorithm::kRing),
          MachineWith({all, last, all}, CollectiveAlgorithm::kHalvingDoubling)};
}

// Checks that simulating the job by classes equals simulating each rank's trace. At most `most`
// classes of ranks may differ on a network whose dimensions are the job's.
void ExpectSameAsTraces(Result<StepJob> made, size_t most, const std::string& what) {
  ASSERT_TRUE(made) << what << ": " << made.error().message;
  for (int64_t place = 0; place < made->places(); ++place) {
    for (size_t i = 0; i < made->program(place).size(); ++i) {
      const bool computes = !made->program(place)[i].communicates();
      if (computes) made->SetDuration(place, i, Nanos{static_cast<int64_t>(100 + i * 37 % 11)});
    }
  }
  const Job job = made->AsJob().value();
  ASSERT_EQ(job.rank_count(), kRanks) << what;
  const auto workload = WorkloadOfJob(job);
  ASSERT_TRUE(workload) << what << ": " << workload.error().message;
  SimWorkload traces{.ranks = {}, .groups = made->Groups()};
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    traces.ranks.push_back(MakeSimRank(made->TraceOf(rank).value()).value());
  }
  size_t fewest = kRanks;
  for (const SimMachine& machine : Machines()) {
    const SimResult expected = Simulate(machine, traces, {.by_class = false}).value();
    const auto got = Simulate(machine, *workload);
    ASSERT_TRUE(got) << what << ": " << got.error().message;
    fewest = std::min(fewest, got->ranks.size());
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(got->OfRank(rank).finished) << what << ", rank " << rank;
      EXPECT_EQ(got->OfRank(rank).begins, expected.OfRank(rank).begins) << what << ", " << rank;
      EXPECT_EQ(got->OfRank(rank).ends, expected.OfRank(rank).ends) << what << ", rank " << rank;
    }
  }
  EXPECT_LE(fewest, most) << what;
}

TransformerModel Small(int64_t experts = 0) {
  TransformerModel model{.layers = 4,
                         .hidden = 64,
                         .heads = 8,
                         .kv_heads = 4,
                         .head_size = 8,
                         .ffn = 192,
                         .vocabulary = 320,
                         .sequence = 32};
  if (experts > 0) model.experts = ExpertsModel{.experts = experts, .top_k = 2, .ffn = 64};
  return model;
}

TEST(JobWorkload, Transformers) {
  const auto expect = [](const TransformerPlan& plan, size_t most, const char* what) {
    ExpectSameAsTraces(MakeTransformerJob(Small(), plan), most, what);
  };
  const auto stages = [](PipelineSchedule schedule, int64_t count, int64_t chunks) {
    return PipelinePlan{
        .schedule = schedule, .stages = count, .micro_batches = 2, .chunks = chunks};
  };
  expect({.data = 8}, 1, "data parallel");
  expect({.layer = {.tensor = 4, .sequence_parallel = false}, .data = 2}, 1, "tensor parallel");
  expect({.layer = {.tensor = 2}, .pipeline = stages(PipelineSchedule::k1F1B, 4, 1)}, 4, "1F1B");
  expect({.data = 2, .pipeline = stages(PipelineSchedule::kGpipe, 4, 1)}, 4, "GPipe");
  expect({.data = 2, .pipeline = stages(PipelineSchedule::kZeroBubble, 4, 1)}, 4, "zero bubble");
  expect({.data = 4, .pipeline = stages(PipelineSchedule::kInterleaved, 2, 2)}, 2, "interleaved");
  expect({.layer = {.context = 4, .context_kind = ContextKind::kRing}, .data = 2}, 1, "ring");
  expect({.layer = {.context = 4, .context_kind = ContextKind::kAllToAll}, .data = 2}, 1,
         "sequences for heads");
  expect({.layer = {.tensor = 2}, .data = 4, .zero_stage = 1, .clips = true}, 1, "ZeRO 1");
  expect({.data = 8, .zero_stage = 3, .clips = true}, 1, "ZeRO 3");
}

TEST(JobWorkload, Experts) {
  ExpectSameAsTraces(MakeTransformerJob(Small(8), {.layer = {.expert = 4}, .data = 8}), 1,
                     "experts");
  TransformerModel uneven = Small(8);
  uneven.experts->imbalance = 1;
  ExpectSameAsTraces(MakeTransformerJob(uneven, {.layer = {.expert = 4}, .data = 8}), 4,
                     "uneven experts");
}

TEST(JobWorkload, OtherModels) {
  ExpectSameAsTraces(MakeDlrmJob(FindPreset(DlrmPresets(), "criteo-kaggle")->model,
                                 {.ranks = kRanks, .batch = 64}),
                     8, "tables");
  const auto network = MakeNetwork(FindPreset(CnnPresets(), "resnet-18")->model());
  ASSERT_TRUE(network) << network.error().message;
  ExpectSameAsTraces(MakeNetworkJob(*network, {.data = kRanks}), 1, "images");
}

// Stages that are their own neighbours: a rank has the same partner for both directions.
TEST(JobWorkload, TwoStages) {
  const Job job =
      MakeTransformerJob(Small(), {.data = 4, .pipeline = {.stages = 2, .micro_batches = 2}})
          ->AsJob()
          .value();
  const SimWorkload workload = WorkloadOfJob(job).value();
  for (const int64_t peer : workload.ranks[1].peers) EXPECT_EQ(peer, 5);
  EXPECT_EQ(workload.ranks[0].program, workload.ranks[3].program);
  EXPECT_NE(workload.ranks[0].program, workload.ranks[4].program);
}

TEST(JobWorkload, RanksWithoutATrace) {
  Job job = MakeTransformerJob(Small(), {.data = 2, .pipeline = {.stages = 2}})->AsJob().value();
  job.classes.pop_back();
  const auto workload = WorkloadOfJob(job);
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().message, "found traces of 2 of 4 ranks, expected all of them");
}

}  // namespace
}  // namespace etude

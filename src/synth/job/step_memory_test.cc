#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/analysis/memory/memory_use.h"
#include "src/synth/layer_testing.h"
#include "src/synth/transformer/inference_program.h"
#include "src/synth/transformer/transformer_job.h"
#include "src/synth/transformer/transformer_layer.h"

namespace etude {
namespace {

using testing_layer::TinyModel;

int64_t KeptBy(const LayerPasses& passes) {
  int64_t sum = 0;
  for (const LayerWork& work : passes.forward) sum += work.kept.count;
  return sum;
}

// Returns the peak above the permanently held memory.
int64_t PeakAbove(const StepJob& job, int64_t place) {
  return std::ranges::max(job.MemoryOf(place)).count -
         job.states()[static_cast<size_t>(place)].total().count;
}

TEST(StepMemory, OfOneStageEverythingIsKeptAtTheEndOfForward) {
  const TransformerModel model = TinyModel(6);
  const StepJob job = MakeTransformerJob(model, {}).value();
  const int64_t parameters = ParameterCount(model);
  EXPECT_EQ(job.states()[0].weights, Bytes{2 * parameters});
  EXPECT_EQ(job.states()[0].gradients, Bytes{4 * parameters});
  EXPECT_EQ(job.states()[0].optimizer, Bytes{12 * parameters});
  EXPECT_EQ(PeakAbove(job, 0), 6 * KeptBy(TransformerLayer(model, {}, 0)) +
                                   KeptBy(TransformerEmbedding(model, {})) +
                                   KeptBy(TransformerHead(model, {})));
}

// 1F1B keeps as many micro-batches as there are stages from here on, GPipe all of them.
TEST(StepMemory, MicroBatchesOfASchedule) {
  const int64_t layer = KeptBy(TransformerLayer(TinyModel(6), {}, 0));
  TransformerPlan plan;
  plan.pipeline = {.schedule = PipelineSchedule::k1F1B, .stages = 3, .micro_batches = 5};
  EXPECT_EQ(PeakAbove(MakeTransformerJob(TinyModel(6), plan).value(), 1), 2 * 2 * layer);
  plan.pipeline.schedule = PipelineSchedule::kGpipe;
  EXPECT_EQ(PeakAbove(MakeTransformerJob(TinyModel(6), plan).value(), 1), 5 * 2 * layer);
}

// The inputs of two layers, and the recomputed activations of the last one.
TEST(StepMemory, FullRecomputationKeepsInputsAndOneLayer) {
  TransformerPlan plan;
  plan.pipeline = {.stages = 3, .micro_batches = 1};
  plan.layer.recompute = Recompute::kFull;
  const int64_t input = 32 * 64 * 2;
  const int64_t layer = KeptBy(TransformerLayer(TinyModel(6), {}, 0));
  EXPECT_EQ(PeakAbove(MakeTransformerJob(TinyModel(6), plan).value(), 1), input + layer);
}

TEST(StepMemory, WhatIsHeldIsFreed) {
  for (const int64_t zero : {0, 1, 2, 3}) {
    for (const auto recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      for (const auto schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kZeroBubble}) {
        TransformerPlan plan;
        plan.layer.tensor = 2;
        plan.layer.attention = AttentionKind::kUnfused;
        plan.layer.recompute = recompute;
        plan.data = 2;
        plan.pipeline = {.schedule = schedule, .stages = 2, .micro_batches = 3};
        plan.zero_stage = zero;
        const StepJob job = MakeTransformerJob(TinyModel(6), plan).value();
        for (int64_t stage = 0; stage < 2; ++stage) {
          int64_t left = 0;
          for (const StepWork& work : job.program(stage)) {
            left += work.held.count;
            EXPECT_GE(left, work.freed.count) << work.name;
            left -= work.freed.count;
          }
          EXPECT_EQ(left, 0) << "ZeRO " << zero << ", stage " << stage;
        }
      }
    }
  }
}

// A token of a sequence has keys and values of 64 numbers of 2 bytes each in each of 3 layers of a
// stage, half of which are on a tensor-parallel rank: 384 bytes.
TEST(StepMemory, TheCacheGrows) {
  TransformerPlan plan;
  plan.phase = ModelPhase::kDecode;
  plan.layer.tensor = 2;
  plan.layer.sequences = 3;
  plan.pipeline = {.stages = 2, .micro_batches = 2};
  plan.cached = 10;
  plan.tokens = 4;
  const StepJob job = MakeTransformerJob(TinyModel(6), plan).value();
  for (int64_t stage = 0; stage < 2; ++stage) {
    const InferenceMemory at_end = InferenceMemoryOf(TinyModel(6), plan, stage);
    const StepStates& states = job.states()[static_cast<size_t>(stage)];
    EXPECT_EQ(states.cache, Bytes{3 * 2 * 10 * 384});
    EXPECT_EQ(states.weights, at_end.weights);
    EXPECT_EQ(states.total(), states.weights + states.cache);
    const std::vector<Bytes> memory = job.MemoryOf(stage);
    EXPECT_TRUE(std::ranges::is_sorted(memory));
    EXPECT_EQ(memory.back(), at_end.total());
    EXPECT_EQ(memory.back().count - states.total().count, 3 * 2 * 4 * 384);
  }
  plan.phase = ModelPhase::kPrefill;
  plan.layer.context = 2;
  plan.cached = 0;
  const StepJob prompts = MakeTransformerJob(TinyModel(6), plan).value();
  EXPECT_EQ(prompts.states()[0].cache, Bytes{});
  EXPECT_EQ(prompts.MemoryOf(0).back().count - prompts.states()[0].weights.count, 3 * 2 * 16 * 384)
      << "half of 32 tokens";
}

TEST(StepMemory, TracesTellIt) {
  StepJob job = MakeTransformerJob(TinyModel(6), {}).value();
  EXPECT_TRUE(StatedMemory(job.TraceOf(0).value()).empty());
  job.TellMemory();
  const std::vector<DeviceMemory> told = StatedMemory(job.TraceOf(0).value());
  ASSERT_EQ(told.size(), 1u);
  const std::vector<Bytes> memory = job.MemoryOf(0);
  EXPECT_EQ(told[0].peak, std::ranges::max(memory));
  EXPECT_EQ(told[0].at_start, memory.front());
  EXPECT_EQ(told[0].at_end, memory.back());
  EXPECT_EQ(told[0].at_peak.live, told[0].peak);
}

}  // namespace
}  // namespace etude

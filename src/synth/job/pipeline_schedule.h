#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/synth/device/misfit.h"

// Order in which the stages of a pipeline process the micro-batches of a step.
// docs/models/transformer.md has the sources of the schedules.
namespace etude {

enum class PipelineSchedule : uint8_t {
  kGpipe,        // all forward, then all backward
  k1F1B,         // alternating forward and backward once the pipeline is full
  kInterleaved,  // 1F1B with several chunks of layers per stage
  kZeroBubble,   // ZB-H1: gradients of weights are delayed to fill waiting times
};

struct PipelinePlan {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t stages = 1;
  int64_t micro_batches = 1;
  // Chunks of layers per stage: chunk 0 of all stages comes before chunk 1 of the first. 1 unless
  // interleaved.
  int64_t chunks = 1;
};

// Returns kBadInput, with the expected values, unless there is such a schedule.
Fits CheckPipeline(const PipelinePlan& plan);

enum class StagePass : uint8_t {
  kForward,
  kBackward,        // of inputs and weights
  kInputGradient,   // first half of backward
  kWeightGradient,  // second half, which no other stage waits for
};

struct StageStep {
  StagePass pass = StagePass::kForward;
  int64_t micro_batch = 0;
  int64_t chunk = 0;

  friend bool operator==(const StageStep&, const StageStep&) = default;
};

// Returns the steps of a stage, in order. The plan must have passed CheckPipeline.
std::vector<StageStep> StageOrder(const PipelinePlan& plan, int64_t stage);

// Returns the bubble, the share of a training step in which a stage is idle because the pipeline
// fills and drains, in 0..1, if forward and both halves of backward take equally long and messages
// take no time. The plan must have passed CheckPipeline. nullopt if there is no formula, as for
// zero-bubble with fewer micro-batches than stages.
std::optional<double> BubbleShare(const PipelinePlan& plan);

}  // namespace etude

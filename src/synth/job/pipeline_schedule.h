#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/synth/device/misfit.h"

// In which order the stages of a pipeline work on the micro-batches of a step.
// docs/models/transformer.md says where the schedules are from.
namespace etude {

enum class PipelineSchedule : uint8_t {
  kGpipe,        // all forward, then all backward
  k1F1B,         // one forward, one backward as soon as the pipeline is full
  kInterleaved,  // the same with several chunks of layers on each stage
  kZeroBubble,   // ZB-H1: gradients of weights later, where a stage would wait
};

struct PipelinePlan {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t stages = 1;
  int64_t micro_batches = 1;
  // Of layers on each stage: chunk 0 of all stages comes before chunk 1 of the first. 1 unless
  // interleaved.
  int64_t chunks = 1;
};

// kBadInput, with what was expected, unless there is such a schedule.
Fits CheckPipeline(const PipelinePlan& plan);

enum class StagePass : uint8_t {
  kForward,
  kBackward,        // of inputs and weights
  kInputGradient,   // one half of backward
  kWeightGradient,  // the other one, which no other stage waits for
};

struct StageStep {
  StagePass pass = StagePass::kForward;
  int64_t micro_batch = 0;
  int64_t chunk = 0;

  friend bool operator==(const StageStep&, const StageStep&) = default;
};

// What a stage does, in order. The plan has passed CheckPipeline.
std::vector<StageStep> StageOrder(const PipelinePlan& plan, int64_t stage);

// The share of a training step for which a stage is idle because the pipeline fills and drains,
// where forward and both halves of backward take equally long and messages take no time: 0..1. The
// plan has passed CheckPipeline. nullopt: there is no formula, as for zero-bubble with fewer
// micro-batches than stages.
std::optional<double> BubbleShare(const PipelinePlan& plan);

}  // namespace etude

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/job/pipeline_schedule.h"
#include "src/synth/job/step_job.h"
#include "src/synth/transformer/transformer_layer.h"
#include "src/synth/transformer/transformer_model.h"

namespace etude {

enum class ModelPhase : uint8_t {
  kTraining,
  kPrefill,  // prompts: all tokens of each sequence at once
  kDecode,   // one token of each sequence at a time
};

// Distribution of a training step, or inference, over ranks.
struct TransformerPlan {
  LayerPlan layer;
  int64_t data = 1;  // replicas, a multiple of the expert-parallel ranks, which are among them
  PipelinePlan pipeline;
  // Shared by replicas: 1 optimizer states, 2 also gradients, 3 also weights.
  int64_t zero_stage = 0;
  // Size of gradients at which they are reduced.
  Bytes bucket{int64_t{25} << 20};
  bool clips = false;  // gradients, by their global norm
  // Size of the first bucket.
  std::optional<Bytes> first_bucket;
  // Gathers shared weights of embedding and head together, and keeps them until backward has ended.
  // Required for a head that is tied to the embedding.
  bool keep_ends = false;

  ModelPhase phase = ModelPhase::kTraining;
  int64_t cached = 0;               // inference: earlier tokens of each sequence, in the cache
  int64_t tokens = 1;               // decode: per sequence
  std::optional<DType> cache_type;  // inference; nullopt: that of the weights

  int64_t ranks() const { return layer.tensor * layer.context * data * pipeline.stages; }
};

// Returns kBadInput, with the expected values, unless the model can be distributed so. Checks the
// model, too.
Fits CheckTransformerPlan(const TransformerModel& model, const TransformerPlan& plan);

// Ranks that communicate, by the axes along which they differ: groups of StepWork.
enum class ParallelGroup : uint8_t {
  kTensor,
  kContext,
  kExpert,
  kReplicas,        // ranks with the same weights: context, expert and data
  kExpertReplicas,  // ranks with the same experts: context, and data except for expert
  kEnds,            // first and last stage, which share the embedding
  kNorm,            // ranks with other gradients: tensor, expert and stage; with ZeRO all
};
inline constexpr size_t kParallelGroupCount = static_cast<size_t>(ParallelGroup::kNorm) + 1;

// Axes of the job's mesh, in this order.
enum class ParallelAxis : uint8_t { kTensor, kContext, kExpert, kData, kStage };

// Returns true if ranks that share experts have different programs, because tokens prefer some.
bool DiffersByExperts(const TransformerModel& model, const TransformerPlan& plan);

// Returns a step of `stage`, or all passes of inference, in an order without deadlock between
// stages. The plan must have passed CheckTransformerPlan.
std::vector<StepWork> StageProgram(const TransformerModel& model, const TransformerPlan& plan,
                                   int64_t stage, int64_t expert_rank = 0);

// Returns the memory that each rank of `stage` holds permanently; for inference the weights, and
// the part of the cache that exists before.
StepStates StatesOfStage(const TransformerModel& model, const TransformerPlan& plan, int64_t stage);

// Returns the number of ranks in a group.
int64_t ParallelGroupSize(const TransformerPlan& plan, ParallelGroup group);

}  // namespace etude

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
  kDecode,   // one token of each sequence after the other
};

// How a training step, or inference, is spread over ranks.
struct TransformerPlan {
  LayerPlan layer;
  int64_t data = 1;  // replicas, a multiple of the expert-parallel ranks, which are among them
  PipelinePlan pipeline;
  // What replicas share: 1 the optimizer's states, 2 also gradients, 3 also weights.
  int64_t zero_stage = 0;
  // Gradients are reduced as soon as there are so many bytes of them.
  Bytes bucket{int64_t{25} << 20};
  bool clips = false;  // gradients, by the norm of all of them
  // So many the first time.
  std::optional<Bytes> first_bucket;
  // Shared weights of embedding and head are gathered together, and stay so until backward has
  // ended. A head that is tied to the embedding needs it.
  bool keep_ends = false;

  ModelPhase phase = ModelPhase::kTraining;
  int64_t cached = 0;               // inference: earlier tokens of each sequence, in the cache
  int64_t tokens = 1;               // decode: of each sequence
  std::optional<DType> cache_type;  // inference; nullopt: that of the weights

  int64_t ranks() const { return layer.tensor * layer.context * data * pipeline.stages; }
};

// kBadInput, with what was expected, unless the model can be spread so. Checks the model, too.
Fits CheckTransformerPlan(const TransformerModel& model, const TransformerPlan& plan);

// Ranks that communicate, by the axes along which they differ: groups of StepWork.
enum class ParallelGroup : uint8_t {
  kTensor,
  kContext,
  kExpert,
  kReplicas,        // have the same weights: context, expert and data
  kExpertReplicas,  // have the same experts: context, and data but for expert
  kEnds,            // first and last stage, which share the embedding
  kNorm,            // have other gradients: tensor, expert and stage; with ZeRO all
};
inline constexpr size_t kParallelGroupCount = static_cast<size_t>(ParallelGroup::kNorm) + 1;

// Of the job's mesh, in this order.
enum class ParallelAxis : uint8_t { kTensor, kContext, kExpert, kData, kStage };

// Whether the ranks that share experts do different things, because tokens prefer some.
bool DiffersByExperts(const TransformerModel& model, const TransformerPlan& plan);

// A step of `stage`, or all passes of inference, in an order in which all stages can run theirs.
// The plan has passed CheckTransformerPlan.
std::vector<StepWork> StageProgram(const TransformerModel& model, const TransformerPlan& plan,
                                   int64_t stage, int64_t expert_rank = 0);

// What each rank of `stage` holds all the time; of inference the weights, and the cache as far as
// it is there before.
StepStates StatesOfStage(const TransformerModel& model, const TransformerPlan& plan, int64_t stage);

// Ranks of a group.
int64_t ParallelGroupSize(const TransformerPlan& plan, ParallelGroup group);

}  // namespace etude

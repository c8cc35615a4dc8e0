#include "src/synth/transformer/inference_program.h"

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/synth/job/step_program.h"
#include "src/synth/layer_program.h"

namespace etude {
namespace {

constexpr int64_t kTokenBytes = 8;

// Returns the number of tokens of each sequence at the end.
int64_t CachedAtTheEnd(const TransformerModel& model, const TransformerPlan& plan) {
  return plan.cached + (plan.phase == ModelPhase::kPrefill ? model.sequence : plan.tokens);
}

class InferenceMaker {
 public:
  using In = StepProgram::In;

  InferenceMaker(const TransformerModel& model, const TransformerPlan& plan, int64_t stage,
                 int64_t expert_rank)
      : model_(model),
        plan_(plan),
        stage_(stage),
        expert_rank_(expert_rank),
        layers_(LayersOfPlace(model.layers, plan.pipeline.stages, stage)) {}

  std::vector<StepWork> Run() {
    const bool prompt = plan_.phase == ModelPhase::kPrefill;
    const int64_t tokens = prompt ? 1 : plan_.tokens;
    for (token_ = 0; token_ < tokens; ++token_) {
      const LayerPlan layer = InferenceLayerPlan(model_, plan_, token_);
      const std::vector<Unit> units = Units(layer);
      for (micro_batch_ = 0; micro_batch_ < plan_.pipeline.micro_batches; ++micro_batch_) {
        program_.Begin({.step = token_,
                        .phase = prompt ? Phase::kPrefill : Phase::kDecode,
                        .micro_batch = micro_batch_});
        step_ends_ = {step_ends_[1], program_.last_compute()};
        In out = Input(layer);
        for (const Unit& unit : units) out = Add(unit, out);
        Output(layer, std::move(out), token_ + 1 < tokens);
      }
    }
    return std::move(program_.works());
  }

 private:
  struct Unit {
    std::string name;
    LayerPasses passes;
  };

  bool IsFirst() const { return stage_ == 0; }
  bool IsLast() const { return stage_ == plan_.pipeline.stages - 1; }

  std::vector<Unit> Units(const LayerPlan& plan) const {
    std::vector<Unit> units;
    if (IsFirst()) units.push_back({"embedding", TransformerEmbedding(model_, plan)});
    for (int64_t layer = layers_.first; layer < layers_.first + layers_.count; ++layer) {
      units.push_back(
          {fmt::format("layer {}", layer), TransformerLayer(model_, plan, layer, expert_rank_)});
    }
    if (IsLast()) units.push_back({"head", TransformerHead(model_, plan)});
    return units;
  }

  // Returns "#1", or for decode "#1 token 2".
  std::string PassName() const {
    std::string name = fmt::format("#{}", micro_batch_);
    if (plan_.phase == ModelPhase::kDecode) name += fmt::format(" token {}", token_);
    return name;
  }

  In Add(const Unit& unit, const In& in) {
    const std::vector<LayerWork>& works = unit.passes.forward;
    std::vector<std::optional<size_t>> ids(works.size());
    for (size_t i = 0; i < works.size(); ++i) {
      ids[i] = AddLayerWork(program_, fmt::format("{} {} {}", unit.name, works[i].name, PassName()),
                            works[i], model_.weights, ids, in);
      program_.works()[*ids[i]].held = works[i].cached;
    }
    return {*ids.back()};
  }

  // Returns the input from the previous stage, or the token chosen by the last stage.
  In Input(const LayerPlan& layer) {
    if (!IsFirst()) return {Message(false, "activations", {}, StateBytes(layer))};
    if (token_ == 0) return {};
    if (IsLast()) return chosen_[micro_batch_];
    return {Message(false, "choice", {}, ChoiceBytes())};
  }
  void Output(const LayerPlan& layer, In out, bool goes_on) {
    if (!IsLast()) {
      Message(true, "activations", std::move(out), StateBytes(layer));
    } else if (goes_on && !IsFirst()) {
      Message(true, "choice", std::move(out), ChoiceBytes());
    } else {
      chosen_[micro_batch_] = std::move(out);
    }
  }
  Bytes StateBytes(const LayerPlan& layer) const {
    return Bytes{StateElements(model_, layer) * ElementBytes(model_.weights).value_or(0)};
  }
  Bytes ChoiceBytes() const { return Bytes{plan_.layer.sequences * kTokenBytes}; }
  // Choices go from the last stage to the first: all messages go to the next stage, wrapping
  // around.
  size_t Message(bool sends, std::string_view what, In data, Bytes bytes) {
    const int64_t stages = plan_.pipeline.stages;
    const int64_t sender = sends ? stage_ : (stage_ + stages - 1) % stages;
    // A choice is received for the next token.
    const int64_t token = sender == stages - 1 && !sends ? token_ - 1 : token_;
    StepWork message{.name = fmt::format("{} {} {}", sends ? "send" : "receive", what, PassName()),
                     .data = std::move(data),
                     .partner = sends ? 1 : -1,
                     .sends = sends,
                     .tag = (token * plan_.pipeline.micro_batches + micro_batch_) * stages + sender,
                     .bytes = bytes};
    // It may arrive once the previous step has begun.
    if (!sends) StepProgram::ComeAfter(message, step_ends_[0]);
    return program_.Push(std::move(message));
  }

  const TransformerModel& model_;
  const TransformerPlan& plan_;
  const int64_t stage_;
  const int64_t expert_rank_;
  const LayerRange layers_;
  StepProgram program_{kParallelGroupCount};
  std::array<std::optional<size_t>, 2> step_ends_;  // of the last two steps
  int64_t token_ = 0;
  int64_t micro_batch_ = 0;
  std::map<int64_t, In> chosen_;  // by micro-batch
};

}  // namespace

LayerPlan InferenceLayerPlan(const TransformerModel& model, const TransformerPlan& plan,
                             int64_t token) {
  LayerPlan layer = plan.layer;
  const bool prompt = plan.phase == ModelPhase::kPrefill;
  layer.inference = {.tokens = prompt ? model.sequence : 1,
                     .cached = plan.cached + token,
                     .cache = plan.cache_type.value_or(model.weights)};
  layer.sequence_parallel = layer.sequence_parallel && prompt;
  return layer;
}

Fits CheckInferencePlan(const TransformerModel& model, const TransformerPlan& plan) {
  constexpr int64_t kMost = int64_t{1} << 24;
  for (const auto& [key, name, value, least] :
       {std::tuple("plan.tokens", "tokens", plan.tokens, int64_t{1}),
        std::tuple("plan.cached", "tokens in the cache", plan.cached, int64_t{0})}) {
    if (value < least || value > kMost) {
      return MakeMisfit({key},
                        fmt::format("{}: found {}, expected {} to {}", name, value, least, kMost));
    }
  }
  if (model.latent) {
    return MakeMisfit({"plan.phase", "latent"},
                      "found latent attention, which is supported for training only");
  }
  if (plan.phase == ModelPhase::kDecode && plan.layer.context != 1) {
    return MakeMisfit({"plan.cp", "plan.phase"},
                      fmt::format("context-parallel ranks: found {}, expected 1 in decode, which "
                                  "processes one token at a time",
                                  plan.layer.context));
  }
  const int64_t cached = CachedAtTheEnd(model, plan);
  if (model.positions != 0 && cached > model.positions) {
    return MakeMisfit({"plan.cached", "plan.tokens", "model.positions"},
                      fmt::format("found sequences of {} tokens, expected up to the {} positions",
                                  cached, model.positions));
  }
  if (plan.zero_stage != 0 || plan.layer.recompute != Recompute::kNone ||
      plan.pipeline.chunks != 1) {
    return MakeMisfit({"plan.zero", "plan.recompute", "plan.chunks"},
                      "found ZeRO, recomputation or chunks, expected none of them in inference, "
                      "which has no backward pass");
  }
  const int64_t last = plan.phase == ModelPhase::kDecode ? plan.tokens - 1 : 0;
  ETUDE_RETURN_IF_MISFIT(CheckLayerPlan(model, InferenceLayerPlan(model, plan, last)));
  const DType type = plan.cache_type.value_or(model.weights);
  double bytes = static_cast<double>(CacheBytesPerToken(model, type).count);
  for (const int64_t factor :
       {cached, plan.layer.sequences, plan.pipeline.micro_batches, plan.data}) {
    bytes *= static_cast<double>(factor);
  }
  if (bytes > std::ldexp(1, 60)) {
    return MakeMisfit({"plan.cached", "plan.sequences", "plan.micro_batches"},
                      fmt::format("found a cache of {:.1e} bytes, expected up to {:.1e}", bytes,
                                  std::ldexp(1, 60)));
  }
  return {};
}

std::vector<StepWork> InferenceProgram(const TransformerModel& model, const TransformerPlan& plan,
                                       int64_t stage, int64_t expert_rank) {
  return InferenceMaker(model, plan, stage, expert_rank).Run();
}

InferenceMemory InferenceMemoryOf(const TransformerModel& model, const TransformerPlan& plan,
                                  int64_t stage) {
  const int64_t stages = plan.pipeline.stages;
  const LayerRange layers = LayersOfPlace(model.layers, stages, stage);
  int64_t weights = 0;
  const auto add = [&](const std::vector<TransformerWeight>& of) {
    for (const TransformerWeight& weight : of) weights += ElementsOnRank(weight, plan.layer);
  };
  if (stage == 0) add(EmbeddingWeights(model));
  for (int64_t layer = layers.first; layer < layers.first + layers.count; ++layer) {
    add(LayerWeights(model, layer));
  }
  if (stage == stages - 1) {
    add(HeadWeights(model));
    // The head's weights of a tied embedding on another stage.
    if (model.tied && stages > 1) {
      weights += ElementsOnRank(EmbeddingWeights(model).front(), plan.layer);
    }
  }
  const DType type = plan.cache_type.value_or(model.weights);
  const Bytes of_token = CacheBytesPerToken(model, type);
  const int64_t sequences = plan.layer.sequences * plan.pipeline.micro_batches;
  const int64_t of_tokens =
      of_token.count / model.layers * layers.count / plan.layer.tensor * sequences;
  return {.weights = Bytes{weights * ElementBytes(model.weights).value_or(0)},
          .cache = Bytes{of_tokens * (CachedAtTheEnd(model, plan) / plan.layer.context)},
          .cached_before = Bytes{of_tokens * (plan.cached / plan.layer.context)}};
}

}  // namespace etude

#include "src/synth/transformer/transformer_program.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/synth/job/step_program.h"
#include "src/synth/layer_program.h"
#include "src/synth/network/replica_buckets.h"
#include "src/synth/transformer/expert_routing.h"
#include "src/synth/transformer/inference_program.h"

namespace etude {
namespace {

constexpr double kMostWork = 5e7;  // of a stage
constexpr std::string_view kEmbedding = "embedding";
constexpr std::string_view kTiedHead = "head";

// Weights that are used and updated together: of a layer, of the embedding or of the head.
struct WeightUnit {
  std::string name;
  const LayerPasses* passes = nullptr;
  std::vector<TransformerWeight> parts;
  int64_t weights = 0;  // elements on a rank without sharing among replicas
  int64_t expert_weights = 0;
  // The part of `weights` with partial gradients on each tensor-parallel rank.
  int64_t common_weights = 0;
  bool kept = false;  // gathered with the other end
};

// Replicas of ReplicaBuckets.
constexpr size_t kDense = 0;
constexpr size_t kExperts = 1;
constexpr size_t kKept = 2;  // of the ends
constexpr size_t kTied = 3;  // the embedding on two stages, separately: equal shares on both
using ByReplicas = std::array<int64_t, 4>;

class ProgramMaker {
 public:
  using In = StepProgram::In;

  ProgramMaker(const TransformerModel& model, const TransformerPlan& plan, int64_t stage,
               int64_t expert_rank)
      : model_(model),
        plan_(plan),
        stage_(stage),
        expert_rank_(expert_rank),
        places_(plan.pipeline.stages * plan.pipeline.chunks),
        keeps_ends_(plan.zero_stage == 3 &&
                    (plan.keep_ends || (model.tied && plan.pipeline.stages == 1))),
        weight_(ElementBytes(model.weights).value_or(0)),
        gradient_(ElementBytes(model.gradients).value_or(0)),
        dense_(TransformerLayer(model, plan.layer, 0)),
        routed_(TransformerLayer(model, plan.layer, model.layers - 1, expert_rank)),
        embedding_(TransformerEmbedding(model, plan.layer)),
        head_(TransformerHead(model, plan.layer)),
        program_(kParallelGroupCount),
        buckets_(program_,
                 {.zero_stage = plan.zero_stage,
                  .bucket = plan.bucket,
                  .first_bucket = plan.first_bucket,
                  .weight = weight_,
                  .gradient = gradient_},
                 {ReplicasOf(ParallelGroup::kReplicas, ""),
                  ReplicasOf(ParallelGroup::kExpertReplicas, "experts' "),
                  ReplicasOf(ParallelGroup::kReplicas, "", /*kept=*/true),
                  ReplicasOf(ParallelGroup::kReplicas, "embedding ", keeps_ends_)}) {}

  std::vector<StepWork> Run() {
    for (int64_t chunk = 0; chunk < plan_.pipeline.chunks; ++chunk) AddUnits(chunk);
    for (const StageStep& step : StageOrder(plan_.pipeline, stage_)) {
      step_ends_ = {step_ends_[1], program_.last_compute()};
      switch (step.pass) {
        case StagePass::kForward: Forward(step); break;
        case StagePass::kBackward:
        case StagePass::kInputGradient: Backward(step); break;
        case StagePass::kWeightGradient: WeightGradients(step); break;
      }
    }
    Update();
    return std::move(program_.works());
  }

  StepStates States() {
    for (int64_t chunk = 0; chunk < plan_.pipeline.chunks; ++chunk) AddUnits(chunk);
    int64_t weights = 0;
    int64_t expert_weights = 0;
    for (const std::vector<WeightUnit>& units : units_) {
      for (const WeightUnit& unit : units) {
        weights += unit.weights;
        expert_weights += unit.expert_weights;
      }
    }
    const auto zero = static_cast<int>(plan_.zero_stage);
    const ModelStates all =
        StatesOnRank(model_, weights, zero, ParallelGroupSize(plan_, ParallelGroup::kReplicas));
    const ModelStates experts = StatesOnRank(
        model_, expert_weights, zero, ParallelGroupSize(plan_, ParallelGroup::kExpertReplicas));
    return {.weights = all.weights + experts.weights,
            .gradients = all.gradients + experts.gradients,
            .optimizer = all.optimizer + experts.optimizer};
  }

 private:
  // Gradients of a unit during backward, needed by the gradients of its weights.
  struct Saved {
    std::vector<std::optional<size_t>> ids;  // by work of the pass
    In in;
  };

  Replicas ReplicasOf(ParallelGroup group, std::string_view name, bool kept = false) const {
    return {.group = static_cast<size_t>(group),
            .ranks = ParallelGroupSize(plan_, group),
            .of = name,
            .kept = kept};
  }

  void AddUnits(int64_t chunk) {
    const int64_t place = chunk * plan_.pipeline.stages + stage_;
    std::vector<WeightUnit>& units = units_.emplace_back();
    if (place == 0) units.push_back(EndOf("embedding", embedding_, EmbeddingWeights(model_)));
    const LayerRange layers = LayersOfPlace(model_.layers, places_, place);
    for (int64_t layer = layers.first; layer < layers.first + layers.count; ++layer) {
      units.push_back(
          UnitOf(fmt::format("layer {}", layer), PassesOf(layer), LayerWeights(model_, layer)));
    }
    if (place == places_ - 1) units.push_back(EndOf("head", head_, WeightsOfHead()));
  }
  // On a stage without the embedding, a tied head has a copy of it.
  std::vector<TransformerWeight> WeightsOfHead() const {
    std::vector<TransformerWeight> weights = HeadWeights(model_);
    if (SharesEmbedding()) {
      weights.push_back(EmbeddingWeights(model_).front());
      weights.back().name = kTiedHead;
    }
    return weights;
  }
  WeightUnit EndOf(std::string name, const LayerPasses& passes,
                   std::vector<TransformerWeight> weights) {
    WeightUnit unit = UnitOf(std::move(name), passes, std::move(weights));
    unit.kept = keeps_ends_;
    if (keeps_ends_) kept_weights_ += unit.weights;
    return unit;
  }
  const LayerPasses& PassesOf(int64_t layer) {
    if (!HasExperts(model_, layer)) return dense_;
    if (!IsUneven(*model_.experts)) return routed_;
    return uneven_.emplace_back(TransformerLayer(model_, plan_.layer, layer, expert_rank_));
  }
  WeightUnit UnitOf(std::string name, const LayerPasses& passes,
                    std::vector<TransformerWeight> weights) const {
    WeightUnit unit{.name = std::move(name), .passes = &passes, .parts = std::move(weights)};
    for (const TransformerWeight& weight : unit.parts) {
      const int64_t elements = ElementsOnRank(weight, plan_.layer);
      (weight.split == WeightSplit::kExperts ? unit.expert_weights : unit.weights) += elements;
      if (IsSummed(weight)) unit.common_weights += elements;
    }
    return unit;
  }

  int64_t PlaceOf(const StageStep& step) const {
    return step.chunk * plan_.pipeline.stages + stage_;
  }
  bool SharesTokens() const { return plan_.layer.tensor > 1 && plan_.layer.sequence_parallel; }
  // Returns true if the tensor-parallel ranks, which all have it, sum its gradients.
  bool IsSummed(const TransformerWeight& weight) const {
    return weight.split == WeightSplit::kNone &&
           (SharesTokens() || (plan_.layer.tensor > 1 && weight.by_heads));
  }
  bool SharesEmbedding() const {
    return model_.tied && plan_.pipeline.stages > 1 &&
           (stage_ == 0 || stage_ == plan_.pipeline.stages - 1);
  }
  // Returns true if two stages have it.
  bool IsTied(const WeightUnit& unit, const TransformerWeight& weight) const {
    return SharesEmbedding() && ((unit.passes == &embedding_ && weight.name == kEmbedding) ||
                                 (unit.passes == &head_ && weight.name == kTiedHead));
  }

  // ---- work

  size_t Compute(std::string name, In data, const LayerWork& what) {
    return program_.Compute({.name = std::move(name),
                             .data = std::move(data),
                             .flops = what.flops,
                             .matrix_flops = what.matrix_flops,
                             .type = model_.weights,
                             .product = what.product,
                             .memory = what.read + what.written});
  }
  size_t Collective(std::string name, In data, CollectiveType type, ParallelGroup group,
                    Bytes bytes) {
    return program_.Collective(std::move(name), std::move(data), type, static_cast<size_t>(group),
                               bytes);
  }
  // `place` is the sender's; a message may be received once the previous step has begun.
  size_t Message(const StageStep& step, bool backward, bool sends, In data) {
    const int64_t place = PlaceOf(step);
    const bool to_next = backward != sends;
    const int64_t sender = sends ? place : place + (backward ? 1 : -1);
    StepWork work{.name = fmt::format("{} {} #{}", sends ? "send" : "receive",
                                      backward ? "gradient" : "activations", step.micro_batch),
                  .data = std::move(data),
                  .partner = to_next ? 1 : -1,
                  .sends = sends,
                  .tag = 2 * (step.micro_batch * places_ + sender) + (backward ? 1 : 0),
                  .bytes = Bytes{StateElements(model_, plan_.layer) * weight_}};
    if (!sends) StepProgram::ComeAfter(work, step_ends_[0]);
    return program_.Push(std::move(work));
  }

  // Emits the works selected by `wanted` and returns the last one. `reduces`: reduces their
  // gradients, which are complete.
  template <typename Wanted>
  In Emit(const WeightUnit& unit, const std::vector<LayerWork>& works, int64_t micro_batch,
          Saved& saved, bool reduces, Wanted wanted) {
    saved.ids.resize(works.size());
    In last = saved.in;
    for (size_t i = 0; i < works.size(); ++i) {
      const LayerWork& work = works[i];
      if (!wanted(work)) continue;
      saved.ids[i] =
          AddLayerWork(program_, fmt::format("{} {} #{}", unit.name, work.name, micro_batch), work,
                       model_.weights, saved.ids, saved.in);
      program_.works()[*saved.ids[i]].held = work.kept;
      if (!work.for_weights) last = {*saved.ids[i]};
      if (reduces) Enter(unit, work, *saved.ids[i]);
    }
    return last;
  }

  // ---- passes

  void Forward(const StageStep& step) {
    program_.Begin({.phase = Phase::kForward, .micro_batch = step.micro_batch});
    In in;
    if (PlaceOf(step) != 0) in = {Message(step, /*backward=*/false, /*sends=*/false, {})};
    GatherEnds(step.micro_batch);
    for (const WeightUnit& unit : units_[static_cast<size_t>(step.chunk)]) {
      Saved saved{.ids = {}, .in = in};
      GatherWeights(unit, step.micro_batch, saved.in);
      in = Emit(unit, unit.passes->forward, step.micro_batch, saved, /*reduces=*/false,
                [](const LayerWork&) { return true; });
      if (!unit.kept) Free(buckets_.Gathered(SharedBy(unit)));
    }
    if (PlaceOf(step) != places_ - 1) {
      Message(step, /*backward=*/false, /*sends=*/true, in);
    } else {
      losses_[step.micro_batch] = in;
    }
  }

  void Backward(const StageStep& step) {
    program_.Begin({.phase = Phase::kBackward, .micro_batch = step.micro_batch});
    const bool whole = step.pass == StagePass::kBackward;
    // Gradients of a micro-batch that are reduced separately wait for those of its weights.
    const bool reduces = Reduces(step.micro_batch) && (whole || plan_.zero_stage < 2);
    if (whole) buckets_.BeginMicroBatch(IsLast(step.micro_batch));
    In in;
    if (PlaceOf(step) != places_ - 1) {
      in = {Message(step, /*backward=*/true, /*sends=*/false, {})};
    } else {
      in = losses_[step.micro_batch];
    }
    const std::vector<WeightUnit>& units = units_[static_cast<size_t>(step.chunk)];
    std::vector<Saved> all(units.size());
    GatherEnds(step.micro_batch);
    In gathered;
    GatherWeights(units.back(), step.micro_batch, gathered);
    for (size_t i = units.size(); i-- > 0;) {
      const WeightUnit& unit = units[i];
      all[i].in = in;
      Append(all[i].in, gathered);
      if (i > 0) gathered = GatherAhead(units[i - 1], step.micro_batch);
      in = Emit(unit, unit.passes->backward, step.micro_batch, all[i], reduces,
                [&](const LayerWork& work) { return whole || !work.for_weights; });
      if (!unit.kept) Free(buckets_.Gathered(SharedBy(unit)));
      if (whole) FreeKept(unit);
      if (whole) Finish(unit, step.micro_batch);
    }
    if (PlaceOf(step) != 0) Message(step, /*backward=*/true, /*sends=*/true, in);
    if (!ends_gathered_.empty()) {
      Free(buckets_.Gathered(ByReplicas{0, 0, kept_weights_, 0}));
    }
    ends_gathered_.clear();
    if (whole) {
      buckets_.EndMicroBatch();
    } else {
      saved_[step.micro_batch] = std::move(all);
    }
  }

  void WeightGradients(const StageStep& step) {
    program_.Begin({.phase = Phase::kBackward, .micro_batch = step.micro_batch});
    const std::vector<WeightUnit>& units = units_[static_cast<size_t>(step.chunk)];
    std::vector<Saved> all = std::move(saved_[step.micro_batch]);
    saved_.erase(step.micro_batch);
    buckets_.BeginMicroBatch(IsLast(step.micro_batch));
    for (size_t i = units.size(); i-- > 0;) {
      const std::vector<LayerWork>& works = units[i].passes->backward;
      for (size_t j = 0; j < works.size() && plan_.zero_stage >= 2; ++j) {
        if (!works[j].for_weights) Enter(units[i], works[j], *all[i].ids[j]);
      }
      Emit(units[i], works, step.micro_batch, all[i], Reduces(step.micro_batch),
           [](const LayerWork& work) { return work.for_weights; });
      FreeKept(units[i]);
      Finish(units[i], step.micro_batch);
    }
    buckets_.EndMicroBatch();
  }

  // ---- memory

  // Frees memory after the last computation.
  void Free(Bytes bytes) {
    Bytes& freed = program_.works()[*program_.last_compute()].freed;
    freed = freed + bytes;
  }
  // Frees the unit's activations of a micro-batch.
  void FreeKept(const WeightUnit& unit) {
    for (const std::vector<LayerWork>* works : {&unit.passes->forward, &unit.passes->backward}) {
      for (const LayerWork& work : *works) Free(work.kept);
    }
  }

  // ---- replicas

  static std::string GatherName(std::string_view of, int64_t micro_batch) {
    return fmt::format("{} weights all_gather #{}", of, micro_batch);
  }
  // By replicas.
  static ByReplicas SharedBy(const WeightUnit& unit) {
    return {unit.weights, unit.expert_weights, 0, 0};
  }
  void GatherWeights(const WeightUnit& unit, int64_t micro_batch, In& in) {
    if (unit.kept) return Append(in, ends_gathered_);
    buckets_.GatherWeights(GatherName(unit.name, micro_batch), SharedBy(unit), in);
  }
  In GatherAhead(const WeightUnit& unit, int64_t micro_batch) {
    if (unit.kept) return ends_gathered_;
    return buckets_.GatherAhead(GatherName(unit.name, micro_batch), SharedBy(unit));
  }
  // Gathers the ends, unless they still are gathered.
  void GatherEnds(int64_t micro_batch) {
    if (!keeps_ends_ || !ends_gathered_.empty()) return;
    buckets_.GatherWeights(GatherName("ends", micro_batch), ByReplicas{0, 0, kept_weights_, 0},
                           ends_gathered_);
  }
  static void Append(In& in, const In& more) { in.insert(in.end(), more.begin(), more.end()); }

  bool IsLast(int64_t micro_batch) const { return micro_batch == plan_.pipeline.micro_batches - 1; }
  bool Reduces(int64_t micro_batch) const { return buckets_.Reduces(IsLast(micro_batch)); }

  // Adds gradients to buckets as they are computed. Those of weights that tensor-parallel ranks
  // must sum first are added when the unit's are complete.
  void Enter(const WeightUnit& unit, const LayerWork& work, size_t id) {
    for (const std::string& name : work.gives_gradients) {
      for (const TransformerWeight& weight : unit.parts) {
        if (weight.name != name || IsSummed(weight)) continue;
        // Both stages sum it before replicas do, unless replicas share gradients.
        if (plan_.zero_stage < 2 && IsTied(unit, weight)) continue;
        buckets_.Add(ReplicasThatHave(unit, weight), ElementsOnRank(weight, plan_.layer), {id});
      }
    }
  }
  size_t ReplicasThatHave(const WeightUnit& unit, const TransformerWeight& weight) const {
    if (weight.split == WeightSplit::kExperts) return kExperts;
    if (IsTied(unit, weight)) return kTied;
    return unit.kept ? kKept : kDense;
  }
  // The gradients of the unit's weights are complete.
  void Finish(const WeightUnit& unit, int64_t micro_batch) {
    if (!Reduces(micro_batch)) return;
    if (unit.common_weights != 0) {
      // Each tensor-parallel rank has the gradients of its share of the tokens, or of its heads.
      const size_t sum = Collective(fmt::format("{} common gradients all_reduce", unit.name),
                                    {*program_.last_compute()}, CollectiveType::kAllReduce,
                                    ParallelGroup::kTensor, Bytes{unit.common_weights * gradient_});
      for (const TransformerWeight& weight : unit.parts) {
        if (IsSummed(weight)) {
          buckets_.Add(ReplicasThatHave(unit, weight), ElementsOnRank(weight, plan_.layer), {sum});
        }
      }
    }
    buckets_.EndUnit();
  }
  int64_t EmbeddingElements() const {
    return ElementsOnRank(EmbeddingWeights(model_).front(), plan_.layer);
  }

  // Sums `elements` of the embedding's gradient over the first and last stage.
  size_t SumEmbedding(int64_t elements, In data) {
    return Collective("embedding gradient all_reduce", std::move(data), CollectiveType::kAllReduce,
                      ParallelGroup::kEnds, Bytes{elements * gradient_});
  }

  void Update() {
    program_.Begin({.phase = Phase::kBackward});
    const bool shares_gradients = plan_.zero_stage >= 2;
    if (SharesEmbedding() && !shares_gradients) {
      const int64_t elements = EmbeddingElements();
      buckets_.Add(kDense, elements, {SumEmbedding(elements, {*program_.last_compute()})});
    }
    In reduced = buckets_.EndBackward();
    if (SharesEmbedding() && shares_gradients) {
      const int64_t replicas = ParallelGroupSize(plan_, ParallelGroup::kReplicas);
      reduced = {SumEmbedding(CeilDiv(EmbeddingElements(), replicas), std::move(reduced))};
    }
    program_.Begin({.phase = Phase::kOptimizer});
    LayerWork update = OptimizerWork(model_, buckets_.updated());
    if (plan_.clips) {
      const LayerWork norm = NormWork(model_, buckets_.updated());
      reduced = {Compute(norm.name, std::move(reduced), norm)};
      if (ParallelGroupSize(plan_, ParallelGroup::kNorm) > 1) {
        reduced = {Collective("gradient norm all_reduce", std::move(reduced),
                              CollectiveType::kAllReduce, ParallelGroup::kNorm, norm.written)};
      }
      update.flops += buckets_.updated();  // times the clipping factor
    }
    buckets_.GatherUpdated(Compute("optimizer", std::move(reduced), update));
  }

  const TransformerModel& model_;
  const TransformerPlan plan_;
  const int64_t stage_;
  const int64_t expert_rank_;
  const int64_t places_;    // of chunks in the network
  const bool keeps_ends_;   // shared weights of embedding and head are gathered together
  const int64_t weight_;    // in bytes
  const int64_t gradient_;  // in bytes
  const LayerPasses dense_;
  const LayerPasses routed_;
  std::deque<LayerPasses> uneven_;  // each of a layer
  const LayerPasses embedding_;
  const LayerPasses head_;
  std::vector<std::vector<WeightUnit>> units_;  // by chunk
  int64_t kept_weights_ = 0;                    // of the ends on this stage
  In ends_gathered_;                            // empty: they are not
  StepProgram program_;
  ReplicaBuckets buckets_;
  std::array<std::optional<size_t>, 2> step_ends_;  // of the last two steps
  std::map<int64_t, In> losses_;                    // by micro-batch
  std::map<int64_t, std::vector<Saved>> saved_;     // by micro-batch, each by unit
};

// Returns a plan with ZeRO only if there are replicas to share with.
TransformerPlan Sharing(TransformerPlan plan) {
  if (plan.data * plan.layer.context == 1) plan.zero_stage = 0;
  return plan;
}

}  // namespace

int64_t ParallelGroupSize(const TransformerPlan& plan, ParallelGroup group) {
  switch (group) {
    case ParallelGroup::kTensor: return plan.layer.tensor;
    case ParallelGroup::kContext: return plan.layer.context;
    case ParallelGroup::kExpert: return plan.layer.expert;
    case ParallelGroup::kReplicas: return plan.layer.context * plan.data;
    case ParallelGroup::kExpertReplicas: return plan.layer.context * plan.data / plan.layer.expert;
    case ParallelGroup::kEnds: return plan.pipeline.stages > 1 ? 2 : 1;
    case ParallelGroup::kNorm:
      if (plan.zero_stage > 0) return plan.ranks();
      return plan.layer.tensor * plan.layer.expert * plan.pipeline.stages;
  }
  return 1;
}

Fits CheckTransformerPlan(const TransformerModel& model, const TransformerPlan& plan) {
  constexpr int64_t kMostRanks = int64_t{1} << 24;
  ETUDE_RETURN_IF_MISFIT(CheckTransformer(model));
  const bool inference = plan.phase != ModelPhase::kTraining;
  ETUDE_RETURN_IF_MISFIT(inference ? CheckInferencePlan(model, plan)
                                   : CheckLayerPlan(model, plan.layer));
  ETUDE_RETURN_IF_MISFIT(CheckPipeline(plan.pipeline));
  if (plan.data < 1 || plan.data > kMostRanks) {
    return MakeMisfit({"plan.dp"}, fmt::format("data-parallel ranks: found {}, expected 1 to {}",
                                               plan.data, kMostRanks));
  }
  if (plan.data % plan.layer.expert != 0) {
    return MakeMisfit(
        {"plan.ep", "plan.dp"},
        fmt::format(
            "data-parallel ranks: found {}, expected a multiple of the {} expert-parallel ranks",
            plan.data, plan.layer.expert));
  }
  double ranks = 1;
  for (const int64_t size :
       {plan.layer.tensor, plan.layer.context, plan.data, plan.pipeline.stages}) {
    ranks *= static_cast<double>(size);
  }
  if (ranks > static_cast<double>(kMostRanks)) {
    return MakeMisfit({"plan.dp", "plan.tp", "plan.pp", "plan.cp"},
                      fmt::format("found {:.0f} ranks, expected up to {}", ranks, kMostRanks));
  }
  const int64_t places = plan.pipeline.stages * plan.pipeline.chunks;
  if (model.layers < places) {
    return MakeMisfit({"plan.pp", "plan.chunks", "model.layers"},
                      fmt::format("layers: found {}, expected one or more for each of {} stages "
                                  "and {} chunks on each",
                                  model.layers, plan.pipeline.stages, plan.pipeline.chunks));
  }
  if (plan.zero_stage < 0 || plan.zero_stage > 3) {
    return MakeMisfit({"plan.zero"},
                      fmt::format("ZeRO stage: found {}, expected 0 to 3", plan.zero_stage));
  }
  for (const Bytes bucket : {plan.bucket, plan.first_bucket.value_or(plan.bucket)}) {
    if (bucket.count < 1) {
      return MakeMisfit({"plan.bucket", "plan.first_bucket"},
                        fmt::format("bucket: found {} bytes, expected one or more", bucket.count));
    }
  }
  const bool rings = plan.layer.context_kind == ContextKind::kRing && plan.layer.context > 1;
  const double of_layer = 64 + (rings ? 12 * static_cast<double>(plan.layer.context) : 0);
  const double passes = plan.phase == ModelPhase::kDecode ? static_cast<double>(plan.tokens) : 1;
  const double work =
      passes * (static_cast<double>(model.layers) / static_cast<double>(places) + 3) *
      static_cast<double>(plan.pipeline.chunks) * static_cast<double>(plan.pipeline.micro_batches) *
      of_layer * static_cast<double>(DiffersByExperts(model, plan) ? plan.layer.expert : 1);
  if (work > kMostWork) {
    return MakeMisfit(
        {"plan.micro_batches", "plan.tokens"},
        fmt::format("found about {:.1e} nodes of a stage, expected up to {:.1e}", work, kMostWork));
  }
  return {};
}

bool DiffersByExperts(const TransformerModel& model, const TransformerPlan& plan) {
  return model.experts && IsUneven(*model.experts) && plan.layer.expert > 1;
}

std::vector<StepWork> StageProgram(const TransformerModel& model, const TransformerPlan& plan,
                                   int64_t stage, int64_t expert_rank) {
  if (plan.phase != ModelPhase::kTraining) {
    return InferenceProgram(model, plan, stage, expert_rank);
  }
  return ProgramMaker(model, Sharing(plan), stage, expert_rank).Run();
}

StepStates StatesOfStage(const TransformerModel& model, const TransformerPlan& plan,
                         int64_t stage) {
  if (plan.phase != ModelPhase::kTraining) {
    const InferenceMemory memory = InferenceMemoryOf(model, plan, stage);
    return {.weights = memory.weights, .cache = memory.cached_before};
  }
  return ProgramMaker(model, Sharing(plan), stage, /*expert_rank=*/0).States();
}

}  // namespace etude

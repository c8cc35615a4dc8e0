#include "src/synth/transformer_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr double kMostWork = 5e7;  // of a stage
constexpr std::string_view kEmbedding = "embedding";

int64_t ShareOf(int64_t elements, int64_t ranks) { return (elements + ranks - 1) / ranks; }

// Weights that are used and updated together: of a layer, of the embedding or of the head.
struct WeightUnit {
  std::string name;
  const LayerPasses* passes = nullptr;
  std::vector<TransformerWeight> parts;
  int64_t weights = 0;  // elements on a rank without sharing among replicas
  int64_t expert_weights = 0;
  // Of `weights`, those that all tensor-parallel ranks have.
  int64_t common_weights = 0;
  bool kept = false;  // gathered with the other ends
};

class ProgramMaker {
 public:
  using In = std::vector<size_t>;

  ProgramMaker(const TransformerModel& model, const TransformerPlan& plan, int64_t stage)
      : model_(model),
        plan_(plan),
        stage_(stage),
        places_(plan.pipeline.stages * plan.pipeline.chunks),
        keeps_ends_(plan.zero_stage == 3 && (plan.keep_ends || model.tied)),
        weight_(ElementBytes(model.weights).value_or(0)),
        gradient_(ElementBytes(model.gradients).value_or(0)),
        dense_(TransformerLayer(model, plan.layer, 0)),
        routed_(TransformerLayer(model, plan.layer, model.layers - 1)),
        embedding_(TransformerEmbedding(model, plan.layer)),
        head_(TransformerHead(model, plan.layer)),
        dense_bucket_{.group = ParallelGroup::kReplicas},
        expert_bucket_{.group = ParallelGroup::kExpertReplicas},
        ends_bucket_{.group = ParallelGroup::kReplicas} {}

  std::vector<StepWork> Run() {
    for (int64_t chunk = 0; chunk < plan_.pipeline.chunks; ++chunk) AddUnits(chunk);
    for (const StageStep& step : StageOrder(plan_.pipeline, stage_)) {
      step_ends_ = {step_ends_[1], last_compute_};
      switch (step.pass) {
        case StagePass::kForward: Forward(step); break;
        case StagePass::kBackward:
        case StagePass::kInputGradient: Backward(step); break;
        case StagePass::kWeightGradient: WeightGradients(step); break;
      }
    }
    Update();
    return std::move(works_);
  }

 private:
  // Gradients that are reduced together.
  struct Bucket {
    ParallelGroup group = ParallelGroup::kReplicas;
    int64_t elements = 0;
    In inputs;
    bool was_full = false;
  };
  // Gradients of a unit on their way back, for what is left to the gradients of its weights.
  struct Saved {
    std::vector<std::optional<size_t>> ids;  // by work of the pass
    In in;
  };

  void AddUnits(int64_t chunk) {
    const int64_t place = chunk * plan_.pipeline.stages + stage_;
    std::vector<WeightUnit>& units = units_.emplace_back();
    if (place == 0) units.push_back(EndOf("embedding", embedding_, EmbeddingWeights(model_)));
    const int64_t rest = model_.layers % places_;
    const int64_t count = model_.layers / places_ + (place < rest ? 1 : 0);
    const int64_t first = model_.layers / places_ * place + std::min(place, rest);
    for (int64_t layer = first; layer < first + count; ++layer) {
      const bool routed = HasExperts(model_, layer);
      units.push_back(UnitOf(fmt::format("layer {}", layer), routed ? routed_ : dense_,
                             LayerWeights(model_, layer)));
    }
    if (place == places_ - 1) units.push_back(EndOf("head", head_, HeadWeights(model_)));
  }
  WeightUnit EndOf(std::string name, const LayerPasses& passes,
                   std::vector<TransformerWeight> weights) {
    WeightUnit unit = UnitOf(std::move(name), passes, std::move(weights));
    unit.kept = keeps_ends_;
    if (keeps_ends_) ends_.weights += unit.weights;
    return unit;
  }
  WeightUnit UnitOf(std::string name, const LayerPasses& passes,
                    std::vector<TransformerWeight> weights) const {
    WeightUnit unit{.name = std::move(name), .passes = &passes, .parts = std::move(weights)};
    for (const TransformerWeight& weight : unit.parts) {
      const int64_t elements = ElementsOnRank(weight, plan_.layer);
      (weight.split == WeightSplit::kExperts ? unit.expert_weights : unit.weights) += elements;
      if (weight.split == WeightSplit::kNone) unit.common_weights += elements;
    }
    return unit;
  }

  int64_t PlaceOf(const StageStep& step) const {
    return step.chunk * plan_.pipeline.stages + stage_;
  }
  bool SharesTokens() const { return plan_.layer.tensor > 1 && plan_.layer.sequence_parallel; }
  bool SharesEmbedding() const {
    return model_.tied && plan_.pipeline.stages > 1 &&
           (stage_ == 0 || stage_ == plan_.pipeline.stages - 1);
  }

  // ---- work

  size_t Push(StepWork work) {
    works_.push_back(std::move(work));
    return works_.size() - 1;
  }
  static void ComeAfter(StepWork& work, std::optional<size_t> other) {
    if (!other || std::ranges::find(work.data, *other) != work.data.end()) return;
    if (std::ranges::find(work.control, *other) == work.control.end()) {
      work.control.push_back(*other);
    }
  }
  // One computation after the other.
  size_t Compute(std::string name, In data, int64_t flops, Bytes memory) {
    StepWork work{
        .name = std::move(name), .data = std::move(data), .flops = flops, .memory = memory};
    ComeAfter(work, last_compute_);
    last_compute_ = Push(std::move(work));
    return *last_compute_;
  }
  // Members of a group call its collectives in one order, so that each is behind the one before.
  size_t Collective(std::string name, In data, CollectiveType type, ParallelGroup group,
                    Bytes bytes, std::optional<size_t> after = std::nullopt) {
    StepWork work{.name = std::move(name),
                  .data = std::move(data),
                  .collective = type,
                  .group = static_cast<size_t>(group),
                  .bytes = bytes};
    std::optional<size_t>& last = last_of_[static_cast<size_t>(group)];
    ComeAfter(work, after);
    ComeAfter(work, last);
    last = Push(std::move(work));
    return *last;
  }
  // `place` is the sender's; what is received may come once the step before has begun.
  size_t Message(const StageStep& step, bool backward, bool sends, In data) {
    const int64_t place = PlaceOf(step);
    const bool to_next = backward != sends;
    const int64_t sender = sends ? place : place + (backward ? 1 : -1);
    const bool shares = SharesTokens();
    const int64_t tokens = plan_.layer.sequences * (model_.sequence / plan_.layer.context) /
                           (shares ? plan_.layer.tensor : 1);
    StepWork work{.name = fmt::format("{} {} #{}", sends ? "send" : "receive",
                                      backward ? "gradient" : "activations", step.micro_batch),
                  .data = std::move(data),
                  .partner = to_next ? 1 : -1,
                  .sends = sends,
                  .tag = 2 * (step.micro_batch * places_ + sender) + (backward ? 1 : 0),
                  .bytes = Bytes{tokens * model_.hidden * weight_}};
    if (!sends) ComeAfter(work, step_ends_[0]);
    return Push(std::move(work));
  }

  static ParallelGroup GroupOf(LayerAxis axis) {
    switch (axis) {
      case LayerAxis::kTensor: return ParallelGroup::kTensor;
      case LayerAxis::kContext: return ParallelGroup::kContext;
      case LayerAxis::kExpert: return ParallelGroup::kExpert;
    }
    return ParallelGroup::kTensor;
  }

  // The works that `wanted` says; gives the last one. `reduces`: of the gradients, which are whole.
  template <typename Wanted>
  In Emit(const WeightUnit& unit, const std::vector<LayerWork>& works, int64_t micro_batch,
          Saved& saved, bool reduces, Wanted wanted) {
    saved.ids.resize(works.size());
    In last = saved.in;
    for (size_t i = 0; i < works.size(); ++i) {
      const LayerWork& work = works[i];
      if (!wanted(work)) continue;
      In data;
      for (const size_t input : work.inputs) data.push_back(*saved.ids[input]);
      if (work.inputs.empty()) data = saved.in;
      std::string name = fmt::format("{} {} #{}", unit.name, work.name, micro_batch);
      saved.ids[i] =
          work.communicates()
              ? Collective(std::move(name), std::move(data), work.collective, GroupOf(work.axis),
                           work.bytes)
              : Compute(std::move(name), std::move(data), work.flops, work.read + work.written);
      if (!work.for_weights) last = {*saved.ids[i]};
      if (reduces) Enter(unit, work, *saved.ids[i]);
    }
    return last;
  }

  // ---- passes

  void Forward(const StageStep& step) {
    In in;
    if (PlaceOf(step) != 0) in = {Message(step, /*backward=*/false, /*sends=*/false, {})};
    GatherEnds(step.micro_batch);
    for (const WeightUnit& unit : units_[static_cast<size_t>(step.chunk)]) {
      Saved saved{.ids = {}, .in = in};
      Append(saved.in,
             GatherWeights(unit, step.micro_batch, std::exchange(unit_begin_, last_compute_)));
      in = Emit(unit, unit.passes->forward, step.micro_batch, saved, /*reduces=*/false,
                [](const LayerWork&) { return true; });
    }
    if (PlaceOf(step) != places_ - 1) {
      Message(step, /*backward=*/false, /*sends=*/true, in);
    } else {
      losses_[step.micro_batch] = in;
    }
  }

  void Backward(const StageStep& step) {
    const bool whole = step.pass == StagePass::kBackward;
    // Gradients of a micro-batch that are reduced on their own wait for those of its weights.
    const bool reduces = Reduces(step.micro_batch) && (whole || plan_.zero_stage < 2);
    if (whole) last_micro_batch_ = IsLast(step.micro_batch);
    In in;
    if (PlaceOf(step) != places_ - 1) {
      in = {Message(step, /*backward=*/true, /*sends=*/false, {})};
    } else {
      in = losses_[step.micro_batch];
    }
    const std::vector<WeightUnit>& units = units_[static_cast<size_t>(step.chunk)];
    std::vector<Saved> all(units.size());
    GatherEnds(step.micro_batch);
    In gathered = GatherWeights(units.back(), step.micro_batch, unit_begin_);
    for (size_t i = units.size(); i-- > 0;) {
      const WeightUnit& unit = units[i];
      all[i].in = in;
      Append(all[i].in, gathered);
      unit_begin_ = last_compute_;
      // Before this one's gradients are reduced, which would hold it up.
      if (i > 0) gathered = GatherWeights(units[i - 1], step.micro_batch, unit_begin_);
      in = Emit(unit, unit.passes->backward, step.micro_batch, all[i], reduces,
                [&](const LayerWork& work) { return whole || !work.for_weights; });
      if (whole) Finish(unit, step.micro_batch);
    }
    if (PlaceOf(step) != 0) Message(step, /*backward=*/true, /*sends=*/true, in);
    ends_gathered_.clear();
    if (whole) {
      FlushOfMicroBatch();
    } else {
      saved_[step.micro_batch] = std::move(all);
    }
  }

  void WeightGradients(const StageStep& step) {
    const std::vector<WeightUnit>& units = units_[static_cast<size_t>(step.chunk)];
    std::vector<Saved> all = std::move(saved_[step.micro_batch]);
    saved_.erase(step.micro_batch);
    last_micro_batch_ = IsLast(step.micro_batch);
    for (size_t i = units.size(); i-- > 0;) {
      const std::vector<LayerWork>& works = units[i].passes->backward;
      for (size_t j = 0; j < works.size() && plan_.zero_stage >= 2; ++j) {
        if (!works[j].for_weights) Enter(units[i], works[j], *all[i].ids[j]);
      }
      Emit(units[i], works, step.micro_batch, all[i], Reduces(step.micro_batch),
           [](const LayerWork& work) { return work.for_weights; });
      Finish(units[i], step.micro_batch);
    }
    FlushOfMicroBatch();
  }

  // ---- replicas

  // Where replicas share the weights, the unit's are gathered while the one before computes: once
  // `after` is done. Gives what to wait for.
  In GatherWeights(const WeightUnit& unit, int64_t micro_batch, std::optional<size_t> after) {
    if (plan_.zero_stage < 3) return {};
    if (unit.kept) return ends_gathered_;
    In gathered;
    for (const auto& [group, elements] :
         {std::pair(ParallelGroup::kReplicas, unit.weights),
          std::pair(ParallelGroup::kExpertReplicas, unit.expert_weights)}) {
      const int64_t ranks = ParallelGroupSize(plan_, group);
      if (ranks == 1 || elements == 0) continue;
      gathered.push_back(Collective(
          fmt::format("{} weights all_gather #{}", unit.name, micro_batch), {},
          CollectiveType::kAllGather, group, Bytes{ShareOf(elements, ranks) * weight_}, after));
    }
    return gathered;
  }
  // Unless they still are.
  void GatherEnds(int64_t micro_batch) {
    if (!ends_gathered_.empty()) return;
    ends_gathered_ = GatherWeights(ends_, micro_batch, std::nullopt);
  }
  static void Append(In& in, const In& more) { in.insert(in.end(), more.begin(), more.end()); }

  bool IsLast(int64_t micro_batch) const { return micro_batch == plan_.pipeline.micro_batches - 1; }
  // Whether gradients are reduced after this one, or kept for the next to add to.
  bool Reduces(int64_t micro_batch) const { return plan_.zero_stage >= 2 || IsLast(micro_batch); }

  // Gradients enter buckets as they are computed. Those of weights that tensor-parallel ranks have
  // to sum first do when the unit's are there.
  void Enter(const WeightUnit& unit, const LayerWork& work, size_t id) {
    for (const std::string& name : work.gives_gradients) {
      for (const TransformerWeight& weight : unit.parts) {
        if (weight.name != name || (SharesTokens() && weight.split == WeightSplit::kNone)) continue;
        if (unit.passes == &embedding_ && name == kEmbedding && SharesEmbedding()) continue;
        AddToBucket(BucketOf(unit, weight), ElementsOnRank(weight, plan_.layer), {id});
      }
    }
  }
  // The gradients of the unit's weights are there.
  void Finish(const WeightUnit& unit, int64_t micro_batch) {
    if (!Reduces(micro_batch)) return;
    if (SharesTokens() && unit.common_weights != 0) {
      // Each tensor-parallel rank has what its share of the tokens gives.
      const size_t sum = Collective(fmt::format("{} common gradients all_reduce", unit.name),
                                    {*last_compute_}, CollectiveType::kAllReduce,
                                    ParallelGroup::kTensor, Bytes{unit.common_weights * gradient_});
      for (const TransformerWeight& weight : unit.parts) {
        if (weight.split == WeightSplit::kNone) {
          AddToBucket(BucketOf(unit, weight), ElementsOnRank(weight, plan_.layer), {sum});
        }
      }
    }
    if (plan_.zero_stage == 3) {
      Flush(dense_bucket_);
      Flush(expert_bucket_);
    }
  }
  Bucket& BucketOf(const WeightUnit& unit, const TransformerWeight& weight) {
    if (weight.split == WeightSplit::kExperts) return expert_bucket_;
    return unit.kept ? ends_bucket_ : dense_bucket_;
  }
  int64_t EmbeddingElements() const {
    return ElementsOnRank(EmbeddingWeights(model_).front(), plan_.layer);
  }

  void AddToBucket(Bucket& bucket, int64_t elements, const In& inputs) {
    if (elements == 0) return;
    bucket.elements += elements;
    for (const size_t input : inputs) {
      if (std::ranges::find(bucket.inputs, input) == bucket.inputs.end()) {
        bucket.inputs.push_back(input);
      }
    }
    const Bytes limit = bucket.was_full ? plan_.bucket : plan_.first_bucket.value_or(plan_.bucket);
    if (bucket.elements * gradient_ < limit.count || plan_.zero_stage == 3) return;
    bucket.was_full = true;
    Flush(bucket);
  }
  void FlushOfMicroBatch() {
    if (plan_.zero_stage < 2) return;
    Flush(dense_bucket_);
    Flush(expert_bucket_);
    Flush(ends_bucket_);
  }
  void Flush(Bucket& bucket) {
    if (bucket.elements == 0) return;
    const int64_t ranks = ParallelGroupSize(plan_, bucket.group);
    const int64_t share = ShareOf(bucket.elements, ranks);
    const bool experts = bucket.group == ParallelGroup::kExpertReplicas;
    if (ranks == 1) {
      reduced_.insert(reduced_.end(), bucket.inputs.begin(), bucket.inputs.end());
    } else {
      const bool shares = plan_.zero_stage > 0;
      const CollectiveType type =
          shares ? CollectiveType::kReduceScatter : CollectiveType::kAllReduce;
      const int64_t elements = shares ? share * ranks : bucket.elements;
      reduced_.push_back(
          Collective(fmt::format("{}gradients {}", experts ? "experts' " : "", Name(type)),
                     bucket.inputs, type, bucket.group, Bytes{elements * gradient_}));
    }
    if (plan_.zero_stage < 2 || last_micro_batch_) {
      updated_ += plan_.zero_stage > 0 ? share : bucket.elements;
      shares_.emplace_back(bucket.group, share);
    }
    bucket.elements = 0;
    bucket.inputs.clear();
  }

  void Update() {
    if (SharesEmbedding()) {
      const int64_t elements = EmbeddingElements();
      const size_t sum =
          Collective("embedding gradient all_reduce", {*last_compute_}, CollectiveType::kAllReduce,
                     ParallelGroup::kEnds, Bytes{elements * gradient_});
      AddToBucket(dense_bucket_, elements, {sum});
    }
    Flush(dense_bucket_);
    Flush(expert_bucket_);
    const LayerWork update = OptimizerWork(model_, updated_);
    const size_t optimizer =
        Compute("optimizer", Distinct(reduced_), update.flops, update.read + update.written);
    if (plan_.zero_stage != 1 && plan_.zero_stage != 2) return;
    for (const auto& [group, share] : shares_) {
      if (ParallelGroupSize(plan_, group) == 1) continue;
      Collective("weights all_gather", {optimizer}, CollectiveType::kAllGather, group,
                 Bytes{share * weight_});
    }
  }
  static In Distinct(In works) {
    std::ranges::sort(works);
    works.erase(std::ranges::unique(works).begin(), works.end());
    return works;
  }

  const TransformerModel& model_;
  const TransformerPlan& plan_;
  const int64_t stage_;
  const int64_t places_;  // of chunks in the network
  const bool keeps_ends_;
  const int64_t weight_;    // bytes
  const int64_t gradient_;  // bytes
  const LayerPasses dense_;
  const LayerPasses routed_;
  const LayerPasses embedding_;
  const LayerPasses head_;
  std::vector<std::vector<WeightUnit>> units_;  // by chunk
  WeightUnit ends_{.name = "ends"};             // those that are kept, together
  In ends_gathered_;                            // empty: they are not
  std::vector<StepWork> works_;
  std::optional<size_t> last_compute_;
  std::array<std::optional<size_t>, kParallelGroupCount> last_of_;  // by group
  std::array<std::optional<size_t>, 2> step_ends_;  // of the last but one and the last
  std::optional<size_t> unit_begin_;                // what came before the last unit
  std::map<int64_t, In> losses_;                    // by micro-batch
  std::map<int64_t, std::vector<Saved>> saved_;     // by micro-batch, each by unit
  Bucket dense_bucket_;
  Bucket expert_bucket_;
  Bucket ends_bucket_;  // of those that are kept
  In reduced_;
  int64_t updated_ = 0;                                    // parameters
  std::vector<std::pair<ParallelGroup, int64_t>> shares_;  // elements of each bucket on a rank
  bool last_micro_batch_ = false;  // of those whose gradients are in buckets
};

}  // namespace

int64_t ParallelGroupSize(const TransformerPlan& plan, ParallelGroup group) {
  switch (group) {
    case ParallelGroup::kTensor: return plan.layer.tensor;
    case ParallelGroup::kContext: return plan.layer.context;
    case ParallelGroup::kExpert: return plan.layer.expert;
    case ParallelGroup::kReplicas: return plan.layer.context * plan.data;
    case ParallelGroup::kExpertReplicas: return plan.layer.context * plan.data / plan.layer.expert;
    case ParallelGroup::kEnds: return plan.pipeline.stages > 1 ? 2 : 1;
  }
  return 1;
}

Status CheckTransformerPlan(const TransformerModel& model, const TransformerPlan& plan) {
  constexpr int64_t kMostRanks = int64_t{1} << 24;
  ETUDE_RETURN_IF_ERROR(CheckTransformer(model));
  ETUDE_RETURN_IF_ERROR(CheckLayerPlan(model, plan.layer));
  ETUDE_RETURN_IF_ERROR(CheckPipeline(plan.pipeline));
  if (plan.data < 1 || plan.data > kMostRanks) {
    return BadInput(
        fmt::format("data-parallel ranks: found {}, expected 1 to {}", plan.data, kMostRanks));
  }
  if (plan.data % plan.layer.expert != 0) {
    return BadInput(
        fmt::format("data-parallel ranks: found {}, expected a multiple of the {} "
                    "expert-parallel ranks, which are among them",
                    plan.data, plan.layer.expert));
  }
  double ranks = 1;
  for (const int64_t size :
       {plan.layer.tensor, plan.layer.context, plan.data, plan.pipeline.stages}) {
    ranks *= static_cast<double>(size);
  }
  if (ranks > static_cast<double>(kMostRanks)) {
    return BadInput(fmt::format("found {:.0f} ranks, expected up to {}", ranks, kMostRanks));
  }
  const int64_t places = plan.pipeline.stages * plan.pipeline.chunks;
  if (model.layers < places) {
    return BadInput(
        fmt::format("layers: found {}, expected one or more for each of {} stages "
                    "and {} chunks on each",
                    model.layers, plan.pipeline.stages, plan.pipeline.chunks));
  }
  if (plan.zero_stage < 0 || plan.zero_stage > 3) {
    return BadInput(fmt::format("ZeRO stage: found {}, expected 0 to 3", plan.zero_stage));
  }
  if (plan.zero_stage >= 2 && model.tied && plan.pipeline.stages > 1) {
    return BadInput(
        "ZeRO stage: found 2 or more and an embedding that first and last stage share, "
        "expected 0 or 1");
  }
  for (const Bytes bucket : {plan.bucket, plan.first_bucket.value_or(plan.bucket)}) {
    if (bucket.count < 1) {
      return BadInput(fmt::format("bucket: found {} bytes, expected one or more", bucket.count));
    }
  }
  constexpr double kWorkOfLayer = 64;
  const double work = (static_cast<double>(model.layers) / static_cast<double>(places) + 3) *
                      static_cast<double>(plan.pipeline.chunks) *
                      static_cast<double>(plan.pipeline.micro_batches) * kWorkOfLayer;
  if (work > kMostWork) {
    return BadInput(fmt::format("found about {:.1e} nodes for each rank, expected up to {:.1e}",
                                work, kMostWork));
  }
  return {};
}

std::vector<StepWork> StageProgram(const TransformerModel& model, const TransformerPlan& plan,
                                   int64_t stage) {
  return ProgramMaker(model, plan, stage).Run();
}

}  // namespace etude

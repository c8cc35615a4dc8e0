#include "src/synth/plan_settings.h"

#include <array>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr auto kNumbers = std::to_array<PlanNumber>({
    {"dp", &PlanSettings::data},
    {"tp", &PlanSettings::tensor},
    {"pp", &PlanSettings::stages},
    {"cp", &PlanSettings::context},
    {"ep", &PlanSettings::expert},
    {"zero", &PlanSettings::zero, 0, 3},
    {"sequences", &PlanSettings::sequences},
    {"micro_batches", &PlanSettings::micro_batches},
    {"chunks", &PlanSettings::chunks},
    {"cached", &PlanSettings::cached, 0},
    {"tokens", &PlanSettings::tokens},
});

constexpr auto kScheduleWords = std::to_array<std::pair<std::string_view, PipelineSchedule>>({
    {"gpipe", PipelineSchedule::kGpipe},
    {"1f1b", PipelineSchedule::k1F1B},
    {"interleaved", PipelineSchedule::kInterleaved},
    {"zero-bubble", PipelineSchedule::kZeroBubble},
});

constexpr auto kRecomputeWords = std::to_array<std::pair<std::string_view, Recompute>>({
    {"none", Recompute::kNone},
    {"selective", Recompute::kSelective},
    {"full", Recompute::kFull},
});

constexpr auto kAttentionWords = std::to_array<std::pair<std::string_view, AttentionKind>>({
    {"fused", AttentionKind::kFused},
    {"unfused", AttentionKind::kUnfused},
});

constexpr auto kContextWords = std::to_array<std::pair<std::string_view, ContextKind>>({
    {"all-gather", ContextKind::kAllGather},
    {"ring", ContextKind::kRing},
    {"all-to-all", ContextKind::kAllToAll},
});

constexpr auto kPhaseWords = std::to_array<std::pair<std::string_view, ModelPhase>>({
    {"training", ModelPhase::kTraining},
    {"prefill", ModelPhase::kPrefill},
    {"decode", ModelPhase::kDecode},
});

}  // namespace

std::span<const PlanNumber> PlanNumbers() { return kNumbers; }
PlanWords<PipelineSchedule> ScheduleWords() { return kScheduleWords; }
PlanWords<Recompute> RecomputeWords() { return kRecomputeWords; }
PlanWords<AttentionKind> AttentionWords() { return kAttentionWords; }
PlanWords<ContextKind> ContextWords() { return kContextWords; }
PlanWords<ModelPhase> PhaseWords() { return kPhaseWords; }

void PlanSettings::Complete(const PlanSettings& other) {
  for (const PlanNumber& number : kNumbers) {
    if (!(this->*number.value)) this->*number.value = other.*number.value;
  }
  const auto complete = [](auto& value, const auto& otherwise) {
    if (!value) value = otherwise;
  };
  complete(sequence_parallel, other.sequence_parallel);
  complete(schedule, other.schedule);
  complete(bucket, other.bucket);
  complete(first_bucket, other.first_bucket);
  complete(keep_ends, other.keep_ends);
  complete(clip, other.clip);
  complete(recompute, other.recompute);
  complete(attention, other.attention);
  complete(context_kind, other.context_kind);
  complete(phase, other.phase);
  complete(cache_type, other.cache_type);
}

tl::expected<TransformerPlan, Misfit> PlanSettings::PlanFor(const TransformerModel& model) const {
  TransformerPlan plan;
  plan.layer.tensor = tensor.value_or(plan.layer.tensor);
  plan.layer.sequence_parallel = sequence_parallel.value_or(plan.layer.sequence_parallel);
  plan.layer.context = context.value_or(plan.layer.context);
  plan.layer.expert = expert.value_or(plan.layer.expert);
  plan.layer.sequences = sequences.value_or(plan.layer.sequences);
  plan.layer.attention = attention.value_or(plan.layer.attention);
  plan.layer.context_kind = context_kind.value_or(plan.layer.context_kind);
  plan.layer.recompute = recompute.value_or(plan.layer.recompute);
  plan.data = data.value_or(plan.data);
  plan.pipeline.schedule = schedule.value_or(plan.pipeline.schedule);
  plan.pipeline.stages = stages.value_or(plan.pipeline.stages);
  plan.pipeline.micro_batches = micro_batches.value_or(plan.pipeline.micro_batches);
  plan.pipeline.chunks = chunks.value_or(plan.pipeline.chunks);
  plan.zero_stage = zero.value_or(plan.zero_stage);
  plan.bucket = bucket.value_or(plan.bucket);
  plan.first_bucket = first_bucket;
  plan.keep_ends = keep_ends.value_or(plan.keep_ends);
  plan.clips = clip.value_or(plan.clips);
  plan.phase = phase.value_or(plan.phase);
  plan.tokens = tokens.value_or(plan.tokens);
  const bool fills = plan.phase == ModelPhase::kDecode && !cached;
  if (fills && plan.tokens > model.sequence) {
    return MakeMisfit(
        {"plan.tokens", "model.sequence"},
        fmt::format(
            "tokens: found {}, expected at most the {} of a sequence unless 'cached' is given",
            plan.tokens, model.sequence));
  }
  plan.cached = fills ? model.sequence - plan.tokens : cached.value_or(0);
  plan.cache_type = cache_type;
  return plan;
}

std::optional<std::pair<std::string_view, std::string_view>> SettingOfOtherPhase(
    const PlanSettings& settings) {
  constexpr std::string_view kTraining = "training";
  constexpr std::string_view kInference = "prefill or decode";
  struct Row {
    std::string_view name;
    bool given;
    std::string_view phases;
    bool fits;
  };
  const ModelPhase phase = settings.phase.value_or(ModelPhase::kTraining);
  const bool trains = phase == ModelPhase::kTraining;
  for (const Row& row : std::to_array<Row>({
           {"zero", settings.zero.has_value(), kTraining, trains},
           {"schedule", settings.schedule.has_value(), kTraining, trains},
           {"chunks", settings.chunks.has_value(), kTraining, trains},
           {"bucket", settings.bucket.has_value(), kTraining, trains},
           {"first_bucket", settings.first_bucket.has_value(), kTraining, trains},
           {"keep_ends", settings.keep_ends.value_or(false), kTraining, trains},
           {"clip", settings.clip.value_or(false), kTraining, trains},
           {"recompute", settings.recompute.has_value(), kTraining, trains},
           {"cached", settings.cached.has_value(), kInference, !trains},
           {"cache_type", settings.cache_type.has_value(), kInference, !trains},
           {"tokens", settings.tokens.has_value(), "decode", phase == ModelPhase::kDecode},
       })) {
    if (row.given && !row.fits) return std::pair(row.name, row.phases);
  }
  return std::nullopt;
}

}  // namespace etude

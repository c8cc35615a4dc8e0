#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/cli/model_kind.h"
#include "src/formats/byte_source.h"
#include "src/report/format.h"
#include "src/synth/float_type.h"
#include "src/synth/inference_program.h"
#include "src/synth/transformer_file.h"
#include "src/synth/transformer_job.h"

namespace etude {
namespace {

constexpr std::string_view kMoe = "moe";

Result<TransformerModel> ReadTransformer(const ModelKind& kind, const std::string& model,
                                         const ModelOptions& options, const RunContext& context) {
  TransformerModel found;
  if (const TransformerPreset* preset = FindTransformerPreset(model)) {
    found = preset->model;
  } else if (model.ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(model, context.limits));
    ETUDE_ASSIGN_OR_RETURN(found, ParseTransformer(text, model));
  } else {
    return tl::unexpected(UnknownModel(kind, model));
  }
  if (options.layers) found.layers = *options.layers;
  if (options.sequence) found.sequence = *options.sequence;
  return found;
}

Status CheckPhase(const ModelOptions& options, ModelPhase phase) {
  const auto only = [](std::string_view option, std::string_view phases) {
    return MakeError(ErrorCode::kUsage, fmt::format("generate: {} is for {}", option, phases));
  };
  const bool training = phase == ModelPhase::kTraining;
  for (const auto& [name, given] : std::to_array<std::pair<std::string_view, bool>>({
           {"--zero", options.zero.has_value()},
           {"--schedule", options.schedule.has_value()},
           {"--chunks", options.chunks.has_value()},
           {"--bucket", options.bucket.has_value()},
           {"--recompute", options.recompute.has_value()},
       })) {
    if (given && !training) return only(name, "--phase training");
  }
  if (training && options.cached) return only("--cached", "--phase prefill or decode");
  if (training && options.cache_type) return only("--cache-type", "--phase prefill or decode");
  if (phase != ModelPhase::kDecode && options.tokens) return only("--tokens", "--phase decode");
  return {};
}

Result<TransformerPlan> LlmPlan(const ModelOptions& options) {
  TransformerPlan plan;
  plan.layer.tensor = options.tensor.value_or(1);
  plan.layer.sequence_parallel = !options.whole_tokens;
  plan.layer.context = options.context.value_or(1);
  plan.layer.expert = options.expert.value_or(1);
  plan.layer.sequences = options.sequences.value_or(1);
  ETUDE_ASSIGN_OR_RETURN(plan.layer.attention,
                         MeaningOf<AttentionKind>("--attention", options.attention,
                                                  {{"fused", AttentionKind::kFused},
                                                   {"unfused", AttentionKind::kUnfused}},
                                                  AttentionKind::kFused));
  ETUDE_ASSIGN_OR_RETURN(plan.layer.recompute,
                         MeaningOf<Recompute>("--recompute", options.recompute,
                                              {{"none", Recompute::kNone},
                                               {"selective", Recompute::kSelective},
                                               {"full", Recompute::kFull}},
                                              Recompute::kNone));
  plan.data = options.data.value_or(1);
  ETUDE_ASSIGN_OR_RETURN(
      plan.pipeline.schedule,
      MeaningOf<PipelineSchedule>("--schedule", options.schedule,
                                  {{"gpipe", PipelineSchedule::kGpipe},
                                   {"1f1b", PipelineSchedule::k1F1B},
                                   {"interleaved", PipelineSchedule::kInterleaved},
                                   {"zero-bubble", PipelineSchedule::kZeroBubble}},
                                  PipelineSchedule::k1F1B));
  plan.pipeline.stages = options.stages.value_or(1);
  plan.pipeline.chunks = options.chunks.value_or(1);
  plan.pipeline.micro_batches = options.micro_batches.value_or(1);
  plan.zero_stage = options.zero.value_or(0);
  ETUDE_ASSIGN_OR_RETURN(plan.bucket, BucketOf(options, plan.bucket));
  ETUDE_ASSIGN_OR_RETURN(plan.phase, MeaningOf<ModelPhase>("--phase", options.phase,
                                                           {{"training", ModelPhase::kTraining},
                                                            {"prefill", ModelPhase::kPrefill},
                                                            {"decode", ModelPhase::kDecode}},
                                                           ModelPhase::kTraining));
  ETUDE_RETURN_IF_ERROR(CheckPhase(options, plan.phase));
  if (options.cache_type) {
    plan.cache_type = FloatType(*options.cache_type);
    if (!plan.cache_type) {
      return MakeError(ErrorCode::kUsage, fmt::format("--cache-type: found '{}', expected {}",
                                                      *options.cache_type, FloatTypeNames()));
    }
  }
  plan.tokens = options.tokens.value_or(1);
  plan.cached = options.cached.value_or(0);
  ETUDE_ASSIGN_OR_RETURN(plan.first_bucket, FirstBucketOf(options, plan.bucket));
  plan.keep_ends = options.keep_ends;
  return plan;
}

// Without a number, sequences are whole at the end of decode.
void SetCached(const ModelOptions& options, const TransformerModel& model, TransformerPlan& plan) {
  if (plan.phase != ModelPhase::kDecode || options.cached) return;
  plan.cached = std::max<int64_t>(model.sequence - plan.tokens, 0);
}

// "decode: sequences 4, tokens 1, cached 511; at most 7.48 GiB of weights and …".
std::string InferenceText(const TransformerModel& model, const TransformerPlan& plan) {
  InferenceMemory most;
  for (int64_t stage = 0; stage < plan.pipeline.stages; ++stage) {
    const InferenceMemory memory = InferenceMemoryOf(model, plan, stage);
    if (memory.total() > most.total()) most = memory;
  }
  const auto count = [](int64_t value) { return FormatCount(static_cast<uint64_t>(value)); };
  const bool prompt = plan.phase == ModelPhase::kPrefill;
  return fmt::format(
      "{}: sequences {}, tokens {}, cached {}; at most {} of weights and {} of "
      "cache on a rank",
      prompt ? "prefill" : "decode",
      count(plan.layer.sequences * plan.pipeline.micro_batches * plan.data),
      count(prompt ? model.sequence : plan.tokens), count(plan.cached), FormatBytes(most.weights),
      FormatBytes(most.cache));
}

Result<GeneratedJob> MakeTransformer(const ModelKind& kind, const std::string& model,
                                     const ModelOptions& options, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(TransformerPlan plan, LlmPlan(options));
  ETUDE_ASSIGN_OR_RETURN(const TransformerModel shapes,
                         ReadTransformer(kind, model, options, context));
  if (kind.name == kMoe && !shapes.experts) {
    return BadInput(
        fmt::format("{}: found a model without experts, expected some; "
                    "'etude generate llm' takes it",
                    model));
  }
  SetCached(options, shapes, plan);
  Result<StepJob> job = MakeTransformerJob(shapes, plan);
  if (!job) return MakeError(job.error().code, fmt::format("{}: {}", model, job.error().message));
  if (plan.layer.recompute == Recompute::kSelective &&
      plan.layer.attention == AttentionKind::kFused) {
    context.Warn(
        "--recompute selective: does nothing, fused attention computes its core again "
        "anyway");
  }
  if (plan.keep_ends && plan.zero_stage < 3) {
    context.Warn("--keep-ends: does nothing, only with --zero 3 are weights gathered");
  }
  const auto count = [](int64_t value) { return FormatCount(static_cast<uint64_t>(value)); };
  std::string text = fmt::format("{}: {} parameters, ", model, count(ParameterCount(shapes)));
  if (kind.name == kMoe) {
    text += fmt::format("{} of them active, ", count(ActiveParameterCount(shapes)));
  }
  text += fmt::format("tp {} × cp {} × dp {} × pp {}", plan.layer.tensor, plan.layer.context,
                      plan.data, plan.pipeline.stages);
  if (plan.layer.expert > 1) text += fmt::format(", ep {} of dp", plan.layer.expert);
  if (plan.phase != ModelPhase::kTraining) text += "\n" + InferenceText(shapes, plan);
  return GeneratedJob{.job = *std::move(job), .text = std::move(text)};
}

Result<GeneratedJob> MakeLlm(const std::string& model, const ModelOptions& options,
                             const RunContext& context) {
  return MakeTransformer(LlmKind(), model, options, context);
}

Result<GeneratedJob> MakeMoe(const std::string& model, const ModelOptions& options,
                             const RunContext& context) {
  return MakeTransformer(MoeKind(), model, options, context);
}

ModelKind TransformerKind(std::string_view name, bool experts) {
  ModelKind kind{.name = name,
                 .options = {"--dp",        "--tp",         "--pp",
                             "--cp",        "--ep",         "--no-sequence-parallel",
                             "--zero",      "--sequences",  "--micro-batches",
                             "--schedule",  "--chunks",     "--bucket",
                             "--recompute", "--attention",  "--layers",
                             "--sequence",  "--phase",      "--cached",
                             "--tokens",    "--cache-type", "--first-bucket",
                             "--keep-ends"},
                 .presets = {},
                 .make = experts ? MakeMoe : MakeLlm};
  for (const TransformerPreset& preset : TransformerPresets()) {
    if (preset.model.experts.has_value() == experts) {
      kind.presets.emplace_back(preset.name, preset.source);
    }
  }
  return kind;
}

}  // namespace

// Takes the models of `moe`, too.
ModelKind LlmKind() { return TransformerKind("llm", /*experts=*/false); }

ModelKind MoeKind() { return TransformerKind(kMoe, /*experts=*/true); }

}  // namespace etude

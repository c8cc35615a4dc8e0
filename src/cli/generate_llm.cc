#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/cli/model_kind.h"
#include "src/formats/byte_source.h"
#include "src/report/format.h"
#include "src/synth/transformer_file.h"
#include "src/synth/transformer_job.h"

namespace etude {
namespace {

Result<TransformerModel> ReadLlm(const std::string& model, const ModelOptions& options,
                                 const RunContext& context) {
  TransformerModel found;
  if (const TransformerPreset* preset = FindTransformerPreset(model)) {
    found = preset->model;
  } else if (model.ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(model, context.limits));
    ETUDE_ASSIGN_OR_RETURN(found, ParseTransformer(text, model));
  } else {
    return tl::unexpected(UnknownModel(LlmKind(), model));
  }
  if (options.layers) found.layers = *options.layers;
  if (options.sequence) found.sequence = *options.sequence;
  return found;
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
  ETUDE_ASSIGN_OR_RETURN(plan.first_bucket, FirstBucketOf(options, plan.bucket));
  plan.keep_ends = options.keep_ends;
  return plan;
}

Result<GeneratedJob> MakeLlm(const std::string& model, const ModelOptions& options,
                             const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const TransformerPlan plan, LlmPlan(options));
  ETUDE_ASSIGN_OR_RETURN(const TransformerModel shapes, ReadLlm(model, options, context));
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
  std::string text =
      fmt::format("{}: {} parameters, tp {} × cp {} × dp {} × pp {}", model,
                  FormatCount(static_cast<uint64_t>(ParameterCount(shapes))), plan.layer.tensor,
                  plan.layer.context, plan.data, plan.pipeline.stages);
  if (plan.layer.expert > 1) text += fmt::format(", ep {} of dp", plan.layer.expert);
  return GeneratedJob{.job = *std::move(job), .text = std::move(text)};
}

}  // namespace

ModelKind LlmKind() {
  ModelKind kind{.name = "llm",
                 .options = {"--dp", "--tp", "--pp", "--cp", "--ep", "--no-sequence-parallel",
                             "--zero", "--sequences", "--micro-batches", "--schedule", "--chunks",
                             "--bucket", "--first-bucket", "--keep-ends", "--recompute",
                             "--attention", "--layers", "--sequence"},
                 .presets = {},
                 .make = MakeLlm};
  for (const TransformerPreset& preset : TransformerPresets()) {
    kind.presets.emplace_back(preset.name, preset.source);
  }
  return kind;
}

}  // namespace etude

#include <algorithm>
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

Result<TransformerFile> ReadTransformer(const ModelKind& kind, const std::string& model,
                                        const ModelOptions& options, const RunContext& context) {
  TransformerFile found;
  if (const TransformerPreset* preset = FindTransformerPreset(model)) {
    found.model = preset->model;
  } else if (model.ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(model, context.limits));
    ETUDE_ASSIGN_OR_RETURN(found, ParseTransformerFile(text, model));
  } else {
    return tl::unexpected(UnknownModel(kind, model));
  }
  if (options.layers) found.model.layers = *options.layers;
  if (options.sequence) found.model.sequence = *options.sequence;
  if (options.imbalance || options.seed) {
    if (!found.model.experts) {
      return BadInput(fmt::format("{}: found {} and a model without experts, expected experts",
                                  model, options.imbalance ? "--imbalance" : "--seed"));
    }
    found.model.experts->imbalance = options.imbalance.value_or(found.model.experts->imbalance);
    found.model.experts->seed = options.seed.value_or(found.model.experts->seed);
  }
  return found;
}

Result<PlanSettings> SettingsOf(const ModelOptions& options) {
  PlanSettings settings{.data = options.data,
                        .tensor = options.tensor,
                        .stages = options.stages,
                        .context = options.context,
                        .expert = options.expert,
                        .zero = options.zero,
                        .sequences = options.sequences,
                        .micro_batches = options.micro_batches,
                        .chunks = options.chunks,
                        .cached = options.cached,
                        .tokens = options.tokens};
  if (options.whole_tokens) settings.sequence_parallel = false;
  if (options.clip) settings.clip = true;
  if (options.keep_ends) settings.keep_ends = true;
  if (options.bucket) {
    ETUDE_ASSIGN_OR_RETURN(settings.bucket, BucketOf(options, Bytes{}));
  }
  if (options.first_bucket) {
    ETUDE_ASSIGN_OR_RETURN(settings.first_bucket, FirstBucketOf(options, Bytes{}));
  }
  ETUDE_ASSIGN_OR_RETURN(settings.schedule,
                         MeaningOf("--schedule", options.schedule, ScheduleWords()));
  ETUDE_ASSIGN_OR_RETURN(settings.recompute,
                         MeaningOf("--recompute", options.recompute, RecomputeWords()));
  ETUDE_ASSIGN_OR_RETURN(settings.attention,
                         MeaningOf("--attention", options.attention, AttentionWords()));
  ETUDE_ASSIGN_OR_RETURN(settings.context_kind,
                         MeaningOf("--context", options.context_kind, ContextWords()));
  ETUDE_ASSIGN_OR_RETURN(settings.phase, MeaningOf("--phase", options.phase, PhaseWords()));
  if (options.cache_type) {
    settings.cache_type = FloatType(*options.cache_type);
    if (!settings.cache_type) {
      return MakeError(ErrorCode::kUsage, fmt::format("--cache-type: found '{}', expected {}",
                                                      *options.cache_type, FloatTypeNames()));
    }
  }
  return settings;
}

// What is said of the plan, by options before the file. What one says may be of another phase than
// the other.
Status CheckPhase(const PlanSettings& settings, const ModelOptions& options,
                  const std::string& model) {
  const auto unfit = SettingOfOtherPhase(settings);
  if (!unfit) return {};
  std::string option = fmt::format("--{}", unfit->first);
  std::ranges::replace(option, '_', '-');
  const std::vector<std::string_view> given = options.Given();
  if (std::ranges::find(given, option) != given.end()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("generate: {} is for --phase {}", option, unfit->second));
  }
  return BadInput(fmt::format("{}: [plan] has '{}', which is for phase {}", model, unfit->first,
                              unfit->second));
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
  ETUDE_ASSIGN_OR_RETURN(PlanSettings settings, SettingsOf(options));
  ETUDE_ASSIGN_OR_RETURN(const TransformerFile file,
                         ReadTransformer(kind, model, options, context));
  const TransformerModel& shapes = file.model;
  if (kind.name == kMoe && !shapes.experts) {
    return BadInput(
        fmt::format("{}: found a model without experts, expected some; "
                    "'etude generate llm' takes it",
                    model));
  }
  settings.Complete(file.plan);
  ETUDE_RETURN_IF_ERROR(CheckPhase(settings, options, model));
  const TransformerPlan plan = settings.PlanFor(shapes);
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
                             "--keep-ends", "--context",    "--imbalance",
                             "--seed",      "--clip"},
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

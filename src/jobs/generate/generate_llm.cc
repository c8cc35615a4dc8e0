#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/jobs/generate/model_kind.h"
#include "src/report/text/format.h"
#include "src/synth/device/float_type.h"
#include "src/synth/transformer/inference_program.h"
#include "src/synth/transformer/transformer_file.h"
#include "src/synth/transformer/transformer_flops.h"
#include "src/synth/transformer/transformer_job.h"

namespace etude {
namespace {

constexpr std::string_view kMoe = "moe";

// Returns the keys of a model's file that an option overrides.
std::vector<std::string> KeysOfTransformer(std::string_view option) {
  if (option == "--vocab") return {"model.vocabulary"};
  if (option == "--ffn") return {"model.ffn"};
  if (option == "--expert-ffn") return {"experts.ffn"};
  std::vector<std::string> keys;
  for (const std::string_view table : {"model", "experts", "plan"}) {
    keys.push_back(fmt::format("{}.{}", table, KeyOfOption(option)));
  }
  return keys;
}

// Changes the shapes that options give. Heads of keys and values, and the size of a head, follow if
// they followed from the others before.
Status ResizeModel(const std::string& name, const ModelOptions& options, TransformerModel& model) {
  const bool all_have_keys = model.kv_heads == model.heads;
  const bool heads_divide = !model.latent && model.heads * model.head_size == model.hidden;
  const auto take = [](std::optional<int64_t> given, int64_t& value) {
    value = given.value_or(value);
  };
  take(options.layers, model.layers);
  take(options.hidden, model.hidden);
  take(options.heads, model.heads);
  if (all_have_keys) model.kv_heads = model.heads;
  take(options.kv_heads, model.kv_heads);
  if (options.head_size) {
    model.head_size = *options.head_size;
  } else if (heads_divide) {
    if (model.hidden % model.heads != 0) {
      return BadInput(fmt::format(
          "{}: heads: found {}, expected a divisor of the {} hidden units unless --head-size is "
          "given",
          name, model.heads, model.hidden));
    }
    model.head_size = model.hidden / model.heads;
  }
  take(options.ffn, model.ffn);
  take(options.vocabulary, model.vocabulary);
  take(options.sequence, model.sequence);
  return {};
}

// Changes the experts that options give.
Status ResizeExperts(const std::string& name, const ModelOptions& options,
                     TransformerModel& model) {
  for (const std::string_view option :
       {"--experts", "--top-k", "--expert-ffn", "--imbalance", "--seed"}) {
    if (!options.Has(option) || model.experts) continue;
    return BadInput(fmt::format(
        "{}: found {}, but the model has no experts; expected a model with experts", name, option));
  }
  if (!model.experts) return {};
  ExpertsModel& experts = *model.experts;
  experts.experts = options.experts.value_or(experts.experts);
  experts.top_k = options.top_k.value_or(experts.top_k);
  experts.ffn = options.expert_ffn.value_or(experts.ffn);
  experts.imbalance = options.imbalance.value_or(experts.imbalance);
  experts.seed = options.seed.value_or(experts.seed);
  return {};
}

// Reads the model of a preset or a file. Options override it, and the keys that they override have
// no place any more.
Result<TransformerFile> ReadTransformer(const ModelKind& kind, const std::string& model,
                                        const ModelOptions& options, const RunContext& context) {
  TransformerFile found;
  if (const TransformerPreset* preset = FindPreset(TransformerPresets(), model)) {
    found.model = preset->model;
  } else if (model.ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, TextOfModel(model, options, context.limits));
    ETUDE_ASSIGN_OR_RETURN(found, ParseTransformerFile(text, model));
  } else {
    return tl::unexpected(UnknownModel(kind, model));
  }
  ETUDE_RETURN_IF_ERROR(ResizeModel(model, options, found.model));
  ETUDE_RETURN_IF_ERROR(ResizeExperts(model, options, found.model));
  for (const std::string_view option : options.Given()) {
    for (const std::string& key : KeysOfTransformer(option)) found.places.erase(key);
  }
  return found;
}

Result<PlanSettings> SettingsOf(const ModelOptions& options) {
  PlanSettings settings = options.plan;
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

// Checks the settings of the plan, first options, then the file. Both may set values for different
// phases.
Status CheckPhase(const PlanSettings& settings, const ModelOptions& options,
                  const TransformerFile& file, const std::string& model) {
  const auto unfit = SettingOfOtherPhase(settings);
  if (!unfit) return {};
  std::string option = fmt::format("--{}", unfit->first);
  std::ranges::replace(option, '_', '-');
  if (options.Has(option)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("generate: {} requires --phase {}", option, unfit->second));
  }
  return tl::unexpected(PlacedError(
      Misfit({fmt::format("plan.{}", unfit->first)},
             fmt::format("[plan]: '{}' requires phase {}", unfit->first, unfit->second)),
      file.places, model));
}

// The text and the facts of an inference job.
struct InferenceFacts {
  int64_t sequences = 0;
  int64_t tokens = 0;  // per sequence
  int64_t cached = 0;
  InferenceMemory most;  // maximum over ranks
};

InferenceFacts InferenceFactsOf(const TransformerModel& model, const TransformerPlan& plan) {
  const bool prompt = plan.phase == ModelPhase::kPrefill;
  InferenceFacts facts{.sequences = plan.layer.sequences * plan.pipeline.micro_batches * plan.data,
                       .tokens = prompt ? model.sequence : plan.tokens,
                       .cached = plan.cached};
  for (int64_t stage = 0; stage < plan.pipeline.stages; ++stage) {
    const InferenceMemory memory = InferenceMemoryOf(model, plan, stage);
    if (memory.total() > facts.most.total()) facts.most = memory;
  }
  return facts;
}

std::string_view Name(ModelPhase phase) {
  return std::ranges::find(PhaseWords(), phase, &std::pair<std::string_view, ModelPhase>::second)
      ->first;
}

std::string CountText(int64_t value) { return FormatCount(static_cast<uint64_t>(value)); }

std::string TextOfTransformer(const std::string& name, bool moe, const TransformerModel& model,
                              const TransformerPlan& plan) {
  std::string text = fmt::format("{}: {} parameters, ", name, CountText(ParameterCount(model)));
  if (moe) text += fmt::format("{} active, ", CountText(ActiveParameterCount(model)));
  text += fmt::format("tp {} × cp {} × dp {} × pp {}", plan.layer.tensor, plan.layer.context,
                      plan.data, plan.pipeline.stages);
  if (plan.layer.expert > 1) text += fmt::format(", ep {} within dp", plan.layer.expert);
  if (plan.phase == ModelPhase::kTraining) return text;
  const InferenceFacts facts = InferenceFactsOf(model, plan);
  text += fmt::format(
      "\n{}: sequences {}, tokens {}, cached {}; per rank at most {} of weights and {} of cache",
      Name(plan.phase), CountText(facts.sequences), CountText(facts.tokens),
      CountText(facts.cached), FormatBytes(facts.most.weights), FormatBytes(facts.most.cache));
  return text;
}

nlohmann::ordered_json FactsOfTransformer(const TransformerModel& model,
                                          const TransformerPlan& plan) {
  nlohmann::ordered_json json = {{"parameters", ParameterCount(model)},
                                 {"active_parameters", ActiveParameterCount(model)},
                                 {"phase", Name(plan.phase)},
                                 {"tp", plan.layer.tensor},
                                 {"cp", plan.layer.context},
                                 {"dp", plan.data},
                                 {"pp", plan.pipeline.stages},
                                 {"ep", plan.layer.expert}};
  if (plan.phase == ModelPhase::kTraining) return json;
  const InferenceFacts facts = InferenceFactsOf(model, plan);
  json["sequences"] = facts.sequences;
  json["tokens"] = facts.tokens;
  json["cached"] = facts.cached;
  json["most_weights_bytes"] = facts.most.weights.count;
  json["most_cache_bytes"] = facts.most.cache.count;
  return json;
}

template <typename T>
std::string_view WordOf(PlanWords<T> words, T value) {
  return std::ranges::find(words, value, &std::pair<std::string_view, T>::second)->first;
}

nlohmann::ordered_json SettingsOfTransformer(const TransformerModel& model,
                                             const TransformerPlan& plan) {
  nlohmann::ordered_json json = {{"dp", plan.data},
                                 {"tp", plan.layer.tensor},
                                 {"pp", plan.pipeline.stages},
                                 {"cp", plan.layer.context},
                                 {"ep", plan.layer.expert},
                                 {"no_sequence_parallel", !plan.layer.sequence_parallel},
                                 {"sequences", plan.layer.sequences},
                                 {"micro_batches", plan.pipeline.micro_batches},
                                 {"attention", WordOf(AttentionWords(), plan.layer.attention)},
                                 {"context", WordOf(ContextWords(), plan.layer.context_kind)},
                                 {"layers", model.layers},
                                 {"hidden", model.hidden},
                                 {"heads", model.heads},
                                 {"kv_heads", model.kv_heads},
                                 {"head_size", model.head_size},
                                 {"ffn", model.ffn},
                                 {"vocab", model.vocabulary},
                                 {"sequence", model.sequence},
                                 {"phase", Name(plan.phase)}};
  if (model.experts) {
    json["experts"] = model.experts->experts;
    json["top_k"] = model.experts->top_k;
    json["expert_ffn"] = model.experts->ffn;
    json["imbalance"] = model.experts->imbalance;
    json["seed"] = model.experts->seed;
  }
  if (plan.phase == ModelPhase::kTraining) {
    json["zero"] = plan.zero_stage;
    json["schedule"] = WordOf(ScheduleWords(), plan.pipeline.schedule);
    json["chunks"] = plan.pipeline.chunks;
    json["bucket"] = plan.bucket.count;
    json["first_bucket"] = plan.first_bucket.value_or(plan.bucket).count;
    json["keep_ends"] = plan.keep_ends;
    json["clip"] = plan.clips;
    json["recompute"] = WordOf(RecomputeWords(), plan.layer.recompute);
    return json;
  }
  json["cached"] = plan.cached;
  json["tokens"] = plan.phase == ModelPhase::kDecode ? plan.tokens : model.sequence;
  json["cache_type"] = etude::Name(plan.cache_type.value_or(model.weights));
  return json;
}

// Returns the bubble. In decode each token waits for the previous one, so there is no formula.
std::optional<double> BubbleOf(const TransformerPlan& plan) {
  switch (plan.phase) {
    case ModelPhase::kTraining: return BubbleShare(plan.pipeline);
    case ModelPhase::kPrefill:
      return BubbleShare(
          {.stages = plan.pipeline.stages, .micro_batches = plan.pipeline.micro_batches});
    case ModelPhase::kDecode: break;
  }
  return plan.pipeline.stages == 1 ? std::optional<double>(0) : std::nullopt;
}

GeneratedStep StepOfTransformer(const TransformerModel& model, const TransformerPlan& plan) {
  return {.item = "token",
          .items = StepTokens(model, plan),
          .flops = ModelFlops(model, plan),
          .bubble = BubbleOf(plan)};
}

// Returns the places of the plan's settings in a file. Flags that are off count as unset.
KeyPlaces SaidOf(const TransformerFile& file) {
  KeyPlaces places = file.places;
  if (!file.plan.keep_ends.value_or(true)) places.erase("plan.keep_ends");
  if (file.plan.sequence_parallel.value_or(false)) places.erase("plan.sequence_parallel");
  return places;
}

void WarnOfIdleOptions(const ModelOptions& options, const TransformerModel& model,
                       const TransformerPlan& plan, const KeyPlaces& places,
                       const RunContext& context) {
  constexpr std::string_view kAlone = "without replicas (--dp, --cp) there is nothing to shard";
  constexpr std::string_view kUnreduced = "without replicas (--dp, --cp) no gradients are reduced";
  constexpr std::string_view kByLayer = "with --zero 3 gradients are reduced by layer";
  const bool alone = plan.data * plan.layer.context == 1;
  const bool gathers = plan.zero_stage == 3;
  const bool decodes = plan.phase == ModelPhase::kDecode;
  const bool uneven = model.experts && model.experts->imbalance > 0;
  const bool one_batch = plan.pipeline.micro_batches == 1;
  const auto rows = std::to_array<IdleOption>({
      {"--zero", alone && plan.zero_stage > 0, kAlone},
      {"--bucket", alone, kUnreduced},
      {"--bucket", !alone && gathers, kByLayer},
      {"--first-bucket", alone, kUnreduced},
      {"--first-bucket", !alone && gathers, kByLayer},
      {"--keep-ends", !gathers, "weights are gathered only with --zero 3"},
      {"--keep-ends", gathers && alone, kAlone},
      {"--keep-ends", gathers && !alone && model.tied && plan.pipeline.stages == 1,
       "a tied embedding always stays gathered"},
      {"--no-sequence-parallel", plan.layer.tensor == 1,
       "with --tp 1 no tokens are split among ranks"},
      {"--no-sequence-parallel", plan.layer.tensor > 1 && decodes,
       "single tokens of decode are never split"},
      {"--context", plan.layer.context == 1, "with --cp 1 nothing is exchanged"},
      {"--schedule", one_batch && plan.pipeline.schedule == PipelineSchedule::kGpipe,
       "with one micro-batch gpipe equals 1f1b"},
      {"--recompute",
       plan.layer.recompute == Recompute::kSelective &&
           plan.layer.attention == AttentionKind::kFused,
       "fused attention always recomputes its core"},
      {"--seed", !uneven, "without --imbalance all experts are equally likely"},
      {"--sequence", decodes && options.plan.cached,
       "--cached and --tokens set the sequence length of decode"},
  });
  WarnOfIdle(options, rows, context, places);
}

// A model with a plan that fits it.
struct PlannedTransformer {
  TransformerFile file;
  TransformerPlan plan;
};

// Plans the model. Errors have the keys of settings if settings do not fit together.
tl::expected<PlannedTransformer, Misfit> PlanTransformer(const ModelKind& kind,
                                                         const std::string& model,
                                                         const ModelOptions& options,
                                                         const RunContext& context) {
  const auto wrong = [](const Error& error) { return tl::unexpected<Misfit>(AsMisfit(error)); };
  Result<PlanSettings> settings = SettingsOf(options);
  if (!settings) return wrong(settings.error());
  Result<TransformerFile> file = ReadTransformer(kind, model, options, context);
  if (!file) return wrong(file.error());
  if (kind.name == kMoe && !file->model.experts) {
    return wrong(
        Error{ErrorCode::kBadInput, fmt::format("{}: found a model without experts, expected a "
                                                "model with experts; use 'etude generate llm'",
                                                model)});
  }
  settings->Complete(file->plan);
  if (const Status fits = CheckPhase(*settings, options, *file, model); !fits) {
    return wrong(fits.error());
  }
  const auto placed = [&](Misfit misfit) {
    misfit.message = PlacedError(misfit, file->places, model).message;
    return tl::unexpected<Misfit>(std::move(misfit));
  };
  auto plan = settings->PlanFor(file->model);
  if (!plan) return placed(plan.error());
  if (const Fits fits = CheckTransformerPlan(file->model, *plan); !fits)
    return placed(fits.error());
  return PlannedTransformer{.file = *std::move(file), .plan = *std::move(plan)};
}

Result<GeneratedJob> MakeTransformer(const ModelKind& kind, const std::string& model,
                                     const ModelOptions& options, const RunContext& context) {
  const auto planned = PlanTransformer(kind, model, options, context);
  if (!planned) return tl::unexpected<Error>(planned.error());
  const TransformerModel& shapes = planned->file.model;
  const TransformerPlan& plan = planned->plan;
  ETUDE_ASSIGN_OR_RETURN(StepJob job, MakeTransformerJob(shapes, plan));
  WarnOfIdleOptions(options, shapes, plan, SaidOf(planned->file), context);
  return GeneratedJob{.job = std::move(job),
                      .text = TextOfTransformer(model, kind.name == kMoe, shapes, plan),
                      .facts = FactsOfTransformer(shapes, plan),
                      .step = StepOfTransformer(shapes, plan),
                      .batch = {.replicas = plan.data,
                                .samples = plan.layer.sequences,
                                .micro_batches = plan.pipeline.micro_batches},
                      .settings = SettingsOfTransformer(shapes, plan)};
}

Fits CheckLlm(const std::string& model, const ModelOptions& options, const RunContext& context) {
  const auto planned = PlanTransformer(LlmKind(), model, options, context);
  if (!planned) return tl::unexpected<Misfit>(planned.error());
  return {};
}

Fits CheckMoe(const std::string& model, const ModelOptions& options, const RunContext& context) {
  const auto planned = PlanTransformer(MoeKind(), model, options, context);
  if (!planned) return tl::unexpected<Misfit>(planned.error());
  return {};
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
                 .family = "language",
                 .options = {"--dp",        "--tp",         "--pp",
                             "--cp",        "--ep",         "--no-sequence-parallel",
                             "--zero",      "--sequences",  "--micro-batches",
                             "--schedule",  "--chunks",     "--bucket",
                             "--recompute", "--attention",  "--layers",
                             "--hidden",    "--heads",      "--kv-heads",
                             "--head-size", "--ffn",        "--vocab",
                             "--experts",   "--top-k",      "--expert-ffn",
                             "--sequence",  "--phase",      "--cached",
                             "--tokens",    "--cache-type", "--first-bucket",
                             "--keep-ends", "--context",    "--imbalance",
                             "--seed",      "--clip"},
                 .presets = {},
                 .others = {},
                 .make = experts ? MakeMoe : MakeLlm,
                 .check = experts ? CheckMoe : CheckLlm};
  for (const TransformerPreset& preset : TransformerPresets()) {
    if (preset.model.experts.has_value() == experts) {
      kind.presets.emplace_back(preset.name, preset.source);
    } else {
      kind.others.emplace_back(preset.name);
    }
  }
  return kind;
}

}  // namespace

// Returns the kind `llm`, which includes the models of `moe`.
ModelKind LlmKind() { return TransformerKind("llm", /*experts=*/false); }

ModelKind MoeKind() { return TransformerKind(kMoe, /*experts=*/true); }

}  // namespace etude

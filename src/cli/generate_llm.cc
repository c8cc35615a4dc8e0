#include "src/cli/generate_llm.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/quantity.h"
#include "src/formats/byte_source.h"
#include "src/report/format.h"
#include "src/synth/transformer_file.h"

namespace etude {
namespace {

constexpr Bounds kFromOne{.least = 1, .most = int64_t{1} << 24};

template <typename T>
using Words = std::vector<std::pair<std::string_view, T>>;

// What a word stands for; kUsage for one that is not among them.
template <typename T>
Result<T> Meaning(std::string_view option, const std::optional<std::string>& word,
                  const Words<T>& words, T otherwise) {
  if (!word) return otherwise;
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) {
    if (name == *word) return meaning;
    names.emplace_back(name);
  }
  return MakeError(ErrorCode::kUsage, fmt::format("{}: found '{}', expected {}", option, *word,
                                                  fmt::join(names, ", ")));
}

}  // namespace

void LlmOptions::Declare(Options& options) {
  options.Value("--dp", &data_, "N", "llm: data-parallel replicas", kFromOne);
  options.Value("--tp", &tensor_, "N", "llm: tensor-parallel ranks", kFromOne);
  options.Value("--pp", &stages_, "N", "llm: pipeline stages", kFromOne);
  options.Value("--cp", &context_, "N", "llm: context-parallel ranks", kFromOne);
  options.Value("--ep", &expert_, "N", "llm: expert-parallel ranks, among the replicas", kFromOne);
  options.Flag("--no-sequence-parallel", &whole_tokens_,
               "llm: tensor-parallel ranks do not share what lies between the matrices");
  options.Value(
      "--zero", &zero_, "STAGE",
      "llm: what replicas share: 1 the optimizer's states, 2 gradients too, 3 weights too",
      {.least = 0, .most = 3});
  options.Value("--sequences", &sequences_, "N", "llm: sequences of a micro-batch of a replica",
                kFromOne);
  options.Value("--micro-batches", &micro_batches_, "N", "llm: micro-batches of a step", kFromOne);
  options.Value("--schedule", &schedule_, "NAME",
                "llm: gpipe, 1f1b, interleaved or zero-bubble (default: 1f1b)");
  options.Value("--chunks", &chunks_, "N", "llm: of layers on each stage, interleaved", kFromOne);
  options.Value("--bucket", &bucket_, "BYTES",
                "llm: gradients that are reduced at once (default: 25MiB)");
  options.Value("--recompute", &recompute_, "WHAT", "llm: none, selective or full (default: none)");
  options.Value("--attention", &attention_, "KIND", "llm: fused or unfused (default: fused)");
  options.Value("--layers", &layers_, "N", "llm: instead of the model's", kFromOne);
  options.Value("--sequence", &sequence_, "N", "llm: tokens of a sequence instead of the model's",
                kFromOne);
}

std::string LlmOptions::Given() const {
  for (const auto& [name, given] : std::to_array<std::pair<const char*, bool>>({
           {"--dp", data_.has_value()},
           {"--tp", tensor_.has_value()},
           {"--pp", stages_.has_value()},
           {"--cp", context_.has_value()},
           {"--ep", expert_.has_value()},
           {"--no-sequence-parallel", whole_tokens_},
           {"--zero", zero_.has_value()},
           {"--sequences", sequences_.has_value()},
           {"--micro-batches", micro_batches_.has_value()},
           {"--schedule", schedule_.has_value()},
           {"--chunks", chunks_.has_value()},
           {"--bucket", bucket_.has_value()},
           {"--recompute", recompute_.has_value()},
           {"--attention", attention_.has_value()},
           {"--layers", layers_.has_value()},
           {"--sequence", sequence_.has_value()},
       })) {
    if (given) return name;
  }
  return "";
}

Result<TransformerModel> LlmOptions::ReadModel(const std::string& model,
                                               const RunContext& context) const {
  TransformerModel found;
  if (const TransformerPreset* preset = FindTransformerPreset(model)) {
    found = preset->model;
  } else if (model.ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(model, context.limits));
    ETUDE_ASSIGN_OR_RETURN(found, ParseTransformer(text, model));
  } else {
    std::vector<std::string> names;
    for (const TransformerPreset& known : TransformerPresets()) names.emplace_back(known.name);
    const std::string hint = DidYouMean(model, names);
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("generate: unknown model '{}'{}", model,
                    hint.empty() ? fmt::format("; there are {}, and files that end in .toml",
                                               fmt::join(names, ", "))
                                 : hint));
  }
  if (layers_) found.layers = *layers_;
  if (sequence_) found.sequence = *sequence_;
  return found;
}

Result<TransformerPlan> LlmOptions::Plan() const {
  TransformerPlan plan;
  plan.layer.tensor = tensor_.value_or(1);
  plan.layer.sequence_parallel = !whole_tokens_;
  plan.layer.context = context_.value_or(1);
  plan.layer.expert = expert_.value_or(1);
  plan.layer.sequences = sequences_.value_or(1);
  ETUDE_ASSIGN_OR_RETURN(plan.layer.attention,
                         Meaning<AttentionKind>("--attention", attention_,
                                                {{"fused", AttentionKind::kFused},
                                                 {"unfused", AttentionKind::kUnfused}},
                                                AttentionKind::kFused));
  ETUDE_ASSIGN_OR_RETURN(plan.layer.recompute,
                         Meaning<Recompute>("--recompute", recompute_,
                                            {{"none", Recompute::kNone},
                                             {"selective", Recompute::kSelective},
                                             {"full", Recompute::kFull}},
                                            Recompute::kNone));
  plan.data = data_.value_or(1);
  ETUDE_ASSIGN_OR_RETURN(plan.pipeline.schedule,
                         Meaning<PipelineSchedule>("--schedule", schedule_,
                                                   {{"gpipe", PipelineSchedule::kGpipe},
                                                    {"1f1b", PipelineSchedule::k1F1B},
                                                    {"interleaved", PipelineSchedule::kInterleaved},
                                                    {"zero-bubble", PipelineSchedule::kZeroBubble}},
                                                   PipelineSchedule::k1F1B));
  plan.pipeline.stages = stages_.value_or(1);
  plan.pipeline.chunks = chunks_.value_or(1);
  plan.pipeline.micro_batches = micro_batches_.value_or(1);
  plan.zero_stage = zero_.value_or(0);
  if (bucket_) {
    const auto bucket = ParseBytes(*bucket_);
    if (!bucket) {
      return MakeError(ErrorCode::kUsage, fmt::format("--bucket: found '{}', expected bytes, as in "
                                                      "25MiB",
                                                      *bucket_));
    }
    plan.bucket = *bucket;
  }
  return plan;
}

Result<LlmOptions::Made> LlmOptions::Make(const std::string& model,
                                          const RunContext& context) const {
  ETUDE_ASSIGN_OR_RETURN(const TransformerPlan plan, Plan());
  ETUDE_ASSIGN_OR_RETURN(const TransformerModel shapes, ReadModel(model, context));
  Result<TransformerJob> job = TransformerJob::Make(shapes, plan);
  if (!job) return MakeError(job.error().code, fmt::format("{}: {}", model, job.error().message));
  if (plan.layer.recompute == Recompute::kSelective &&
      plan.layer.attention == AttentionKind::kFused) {
    context.Warn(
        "--recompute selective: does nothing, fused attention computes its core again "
        "anyway");
  }
  std::string text =
      fmt::format("{}: {} parameters, tp {} × cp {} × dp {} × pp {}", model,
                  FormatCount(static_cast<uint64_t>(ParameterCount(shapes))), plan.layer.tensor,
                  plan.layer.context, plan.data, plan.pipeline.stages);
  if (plan.layer.expert > 1) text += fmt::format(", ep {} of dp", plan.layer.expert);
  return Made{.job = *std::move(job), .text = std::move(text)};
}

}  // namespace etude

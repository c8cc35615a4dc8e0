#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/saturating.h"
#include "src/base/text/quantity.h"
#include "src/jobs/generate/model_kind.h"
#include "src/report/text/format.h"
#include "src/synth/network/network_file.h"
#include "src/synth/network/network_job.h"

namespace etude {
namespace {

// Parses height and width: "224", or "224x320".
Result<std::optional<Extent>> ImageOf(const ModelOptions& options) {
  if (!options.image) return std::optional<Extent>();
  const std::string_view text = *options.image;
  const size_t cross = text.find('x');
  const auto height = ParseWhole(text.substr(0, cross));
  const auto width = cross == std::string_view::npos ? height : ParseWhole(text.substr(cross + 1));
  constexpr int64_t kMost = int64_t{1} << 24;
  const auto fits = [](std::optional<int64_t> side) {
    return side && *side >= 1 && *side <= kMost;
  };
  if (fits(height) && fits(width)) return Extent{.height = *height, .width = *width};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--image: found '{}', expected one side or height x width, each 1 "
                               "to {}, such as 224 or 224x320",
                               text, kMost));
}

Result<NetworkModel> ReadNetworkModel(const ModelKind& kind, std::span<const NetworkPreset> presets,
                                      const std::string& model, const ModelOptions& options,
                                      const RunContext& context) {
  if (const NetworkPreset* preset = FindPreset(presets, model)) return preset->model();
  if (!model.ends_with(".toml")) return tl::unexpected(UnknownModel(kind, model));
  ETUDE_ASSIGN_OR_RETURN(const std::string text, TextOfModel(model, options, context.limits));
  return ParseNetwork(text, model, presets);
}

Result<NetworkPlan> PlanOf(const ModelOptions& options, std::string_view inference,
                           OptimizerKind optimizer) {
  NetworkPlan plan;
  plan.data = options.plan.data.value_or(1);
  plan.images = options.batch.value_or(1);
  plan.micro_batches = options.plan.micro_batches.value_or(1);
  plan.zero_stage = options.plan.zero.value_or(0);
  ETUDE_ASSIGN_OR_RETURN(plan.bucket, BucketOf(options, plan.bucket));
  ETUDE_ASSIGN_OR_RETURN(plan.optimizer, MeaningOf<OptimizerKind>("--optimizer", options.optimizer,
                                                                  {{"sgd", OptimizerKind::kSgd},
                                                                   {"adam", OptimizerKind::kAdam}},
                                                                  optimizer));
  ETUDE_ASSIGN_OR_RETURN(plan.phase,
                         MeaningOf<NetworkPhase>("--phase", options.phase,
                                                 {{"training", NetworkPhase::kTraining},
                                                  {inference, NetworkPhase::kInference}},
                                                 NetworkPhase::kTraining));
  plan.steps = options.steps.value_or(1);
  constexpr auto kOfTraining =
      std::to_array<std::string_view>({"--zero", "--micro-batches", "--bucket", "--optimizer"});
  constexpr auto kOfInference = std::to_array<std::string_view>({"--steps"});
  ETUDE_RETURN_IF_ERROR(plan.phase == NetworkPhase::kInference
                            ? CheckPhaseOptions(options, kOfTraining, "training")
                            : CheckPhaseOptions(options, kOfInference, inference));
  return plan;
}

void WarnOfIdleSharing(const ModelOptions& options, const NetworkPlan& plan,
                       const RunContext& context) {
  const bool alone = plan.data == 1;
  const auto rows = std::to_array<IdleOption>({
      {"--zero", alone && plan.zero_stage > 0, "with one replica there is nothing to shard"},
      {"--bucket", alone, "with one replica no gradients are reduced"},
      {"--bucket", !alone && plan.zero_stage == 3, "with --zero 3 gradients are reduced per unit"},
  });
  WarnOfIdle(options, rows, context);
}

struct NetworkFacts {
  uint64_t multiply_accumulates = 0;  // per image
  std::optional<Bytes> kept;          // for backward
};

NetworkFacts NetworkFactsOf(const Network& network, const NetworkPlan& plan) {
  const NetworkCosts one(network, 1, NetworkPhase::kInference);
  uint64_t flops = 0;
  for (size_t i = 0; i < network.model.layers.size(); ++i) {
    if (const auto work = one.Of(i).forward) flops += static_cast<uint64_t>(work->matrix_flops);
  }
  NetworkFacts facts{.multiply_accumulates = flops / 2};
  if (plan.phase == NetworkPhase::kTraining) {
    facts.kept = NetworkCosts(network, plan.images, NetworkPhase::kTraining).Kept();
  }
  return facts;
}

std::string TextOfNetwork(const std::string& model, const Network& network, const NetworkPlan& plan,
                          const NetworkFacts& facts) {
  const Shape& image = network.shapes.front();
  std::string text = fmt::format(
      "{}: {} parameters, {} multiply-accumulates per image of {} × {} × {}, dp {} × {}", model,
      FormatCount(static_cast<uint64_t>(network.parameters())),
      FormatCount(facts.multiply_accumulates), image.channels, image.height, image.width, plan.data,
      FormatCount(static_cast<uint64_t>(plan.images), "image"));
  if (facts.kept) text += fmt::format(", {} kept for backward", FormatBytes(*facts.kept));
  return text;
}

nlohmann::ordered_json FactsOfNetwork(const Network& network, const NetworkPlan& plan,
                                      const NetworkFacts& facts) {
  const Shape& image = network.shapes.front();
  nlohmann::ordered_json json = {{"parameters", network.parameters()},
                                 {"multiply_accumulates", facts.multiply_accumulates},
                                 {"image", {image.channels, image.height, image.width}},
                                 {"phase", plan.phase == NetworkPhase::kTraining ? "training"
                                           : network.model.denoises              ? "sampling"
                                                                                 : "inference"},
                                 {"dp", plan.data},
                                 {"images", plan.images}};
  if (facts.kept) json["kept_bytes"] = facts.kept->count;
  return json;
}

nlohmann::ordered_json SettingsOfNetwork(const Network& network, const NetworkPlan& plan) {
  const Shape& image = network.shapes.front();
  nlohmann::ordered_json json = {{"dp", plan.data},
                                 {"batch", plan.images},
                                 {"image", fmt::format("{}x{}", image.height, image.width)},
                                 {"phase", plan.phase == NetworkPhase::kTraining ? "training"
                                           : network.model.denoises              ? "sampling"
                                                                                 : "inference"}};
  if (plan.phase == NetworkPhase::kInference) {
    json["steps"] = plan.steps;
    return json;
  }
  json["micro_batches"] = plan.micro_batches;
  json["zero"] = plan.zero_stage;
  json["optimizer"] = plan.optimizer == OptimizerKind::kSgd ? "sgd" : "adam";
  json["bucket"] = plan.bucket.count;
  return json;
}

Result<GeneratedJob> MakeOfNetwork(const std::string& model, NetworkModel layers,
                                   const NetworkPlan& plan, const ModelOptions& options,
                                   const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::optional<Extent> image, ImageOf(options));
  const auto wrong = [&](const Error& error) {
    return MakeError(error.code, fmt::format("{}: {}", model, error.message));
  };
  const auto network = MakeNetwork(std::move(layers), image);
  if (!network) return wrong(network.error());
  Result<StepJob> job = MakeNetworkJob(*network, plan);
  if (!job) return wrong(job.error());
  WarnOfIdleSharing(options, plan, context);
  const NetworkFacts facts = NetworkFactsOf(*network, plan);
  return GeneratedJob{
      .job = *std::move(job),
      .text = TextOfNetwork(model, *network, plan, facts),
      .facts = FactsOfNetwork(*network, plan, facts),
      .step = {.item = "image",
               .items = SaturatingProduct({plan.data, plan.images, plan.micro_batches}),
               .flops = std::nullopt,
               .bubble = 0},
      .batch = {.replicas = plan.data, .samples = plan.images, .micro_batches = plan.micro_batches},
      .settings = SettingsOfNetwork(*network, plan)};
}

Result<GeneratedJob> MakeCnn(const std::string& model, const ModelOptions& options,
                             const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanOf(options, "inference", OptimizerKind::kSgd));
  ETUDE_ASSIGN_OR_RETURN(NetworkModel layers,
                         ReadNetworkModel(CnnKind(), CnnPresets(), model, options, context));
  return MakeOfNetwork(model, std::move(layers), plan, options, context);
}

Result<GeneratedJob> MakeDiffusion(const std::string& model, const ModelOptions& options,
                                   const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const NetworkPlan plan, PlanOf(options, "sampling", OptimizerKind::kAdam));
  ETUDE_ASSIGN_OR_RETURN(NetworkModel layers, ReadNetworkModel(DiffusionKind(), DiffusionPresets(),
                                                               model, options, context));
  layers.denoises = true;
  return MakeOfNetwork(model, std::move(layers), plan, options, context);
}

}  // namespace

ModelKind CnnKind() {
  ModelKind kind{.name = "cnn",
                 .family = "image",
                 .options = {"--dp", "--zero", "--micro-batches", "--bucket", "--batch", "--image",
                             "--optimizer", "--phase"},
                 .presets = {},
                 .others = {},
                 .make = MakeCnn};
  AddPresets(CnnPresets(), kind);
  return kind;
}

ModelKind DiffusionKind() {
  ModelKind kind{.name = "diffusion",
                 .family = "image",
                 .options = {"--dp", "--zero", "--micro-batches", "--bucket", "--batch", "--image",
                             "--optimizer", "--phase", "--steps"},
                 .presets = {},
                 .others = {},
                 .make = MakeDiffusion};
  AddPresets(DiffusionPresets(), kind);
  return kind;
}

}  // namespace etude

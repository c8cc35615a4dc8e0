#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/quantity.h"
#include "src/cli/model_kind.h"
#include "src/formats/byte_source.h"
#include "src/report/format.h"
#include "src/synth/dlrm_file.h"
#include "src/synth/dlrm_job.h"

namespace etude {
namespace {

Result<DlrmModel> ReadDlrm(const std::string& model, const RunContext& context) {
  if (const DlrmPreset* preset = FindDlrmPreset(model)) return preset->model;
  if (!model.ends_with(".toml")) return tl::unexpected(UnknownModel(DlrmKind(), model));
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(model, context.limits));
  return ParseDlrm(text, model);
}

Result<std::optional<Bytes>> TableBytes(std::string_view option,
                                        const std::optional<std::string>& given) {
  if (!given) return std::nullopt;
  const auto bytes = ParseBytes(*given);
  if (bytes) return bytes;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: found '{}', expected bytes, as in 64MiB", option, *given));
}

Result<DlrmPlan> DlrmPlanOf(const ModelOptions& options) {
  DlrmPlan plan;
  plan.ranks = options.data.value_or(plan.ranks);
  plan.batch = options.batch.value_or(plan.batch);
  ETUDE_ASSIGN_OR_RETURN(const auto replicate,
                         TableBytes("--replicate-tables", options.replicate_tables));
  plan.replicate = replicate.value_or(plan.replicate);
  ETUDE_ASSIGN_OR_RETURN(plan.split_rows, TableBytes("--split-rows", options.split_rows));
  plan.most_columns = options.split_columns;
  ETUDE_ASSIGN_OR_RETURN(
      plan.cost, MeaningOf<TableCost>(
                     "--table-cost", options.table_cost,
                     {{"bytes", TableCost::kBytes}, {"lookups", TableCost::kLookups}}, plan.cost));
  ETUDE_ASSIGN_OR_RETURN(
      plan.optimizer,
      MeaningOf<DlrmOptimizer>("--optimizer", options.optimizer,
                               {{"sgd", DlrmOptimizer::kSgd}, {"adagrad", DlrmOptimizer::kAdagrad}},
                               plan.optimizer));
  ETUDE_ASSIGN_OR_RETURN(
      plan.training,
      MeaningOf<bool>("--phase", options.phase, {{"training", true}, {"inference", false}}, true));
  ETUDE_ASSIGN_OR_RETURN(plan.bucket, BucketOf(options, plan.bucket));
  constexpr auto kOfTraining = std::to_array<std::string_view>({"--bucket", "--optimizer"});
  if (!plan.training) {
    ETUDE_RETURN_IF_ERROR(CheckPhaseOptions(options, kOfTraining, "training"));
  }
  return plan;
}

void WarnOfOneRank(const ModelOptions& options, const RunContext& context) {
  for (const auto& [option, given] :
       {std::pair("--replicate-tables", options.replicate_tables.has_value()),
        std::pair("--split-rows", options.split_rows.has_value()),
        std::pair("--table-cost", options.table_cost.has_value())}) {
    if (given) context.Warn(fmt::format("{}: does nothing on one rank", option));
  }
}

// Where tables are, and what ranks hold all the time.
std::string PlacementText(const DlrmModel& model, const DlrmPlan& plan) {
  const TablePlacement placement = PlaceTables(model, plan);
  size_t parts = 0;
  Bytes least{INT64_MAX};
  Bytes most;
  for (int64_t rank = 0; rank < plan.ranks; ++rank) {
    parts += placement.parts[static_cast<size_t>(rank)].size();
    const Bytes held = StatesOfRank(model, plan, placement, rank).total();
    least = std::min(least, held);
    most = std::max(most, held);
  }
  std::string text = fmt::format(
      "tables: {} replicated, {} by rows, others in {}, each on one rank; weights, gradients and "
      "optimizer of a rank: {}",
      placement.replicated.size(), placement.by_rows.size(), FormatCount(parts, "part"),
      FormatBytes(least));
  if (most != least) text += fmt::format(" to {}", FormatBytes(most));
  return text;
}

Result<GeneratedJob> MakeDlrm(const std::string& model, const ModelOptions& options,
                              const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const DlrmPlan plan, DlrmPlanOf(options));
  ETUDE_ASSIGN_OR_RETURN(const DlrmModel shapes, ReadDlrm(model, context));
  if (plan.ranks == 1) WarnOfOneRank(options, context);
  Result<StepJob> job = MakeDlrmJob(shapes, plan);
  if (!job) return MakeError(job.error().code, fmt::format("{}: {}", model, job.error().message));
  std::string text = fmt::format("{}: {} parameters in {}, {} beside them, dp {}\n{}", model,
                                 FormatCount(static_cast<uint64_t>(TableParameters(shapes))),
                                 FormatCount(shapes.tables.size(), "table"),
                                 FormatCount(static_cast<uint64_t>(DenseParameters(shapes))),
                                 plan.ranks, PlacementText(shapes, plan));
  return GeneratedJob{.job = *std::move(job), .text = std::move(text)};
}

}  // namespace

ModelKind DlrmKind() {
  ModelKind kind{
      .name = "dlrm",
      .options = {"--dp", "--bucket", "--batch", "--phase", "--optimizer", "--replicate-tables",
                  "--split-rows", "--split-columns", "--table-cost"},
      .presets = {},
      .make = MakeDlrm};
  for (const DlrmPreset& preset : DlrmPresets()) {
    kind.presets.emplace_back(preset.name, preset.source);
  }
  return kind;
}

}  // namespace etude

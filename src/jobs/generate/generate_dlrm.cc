#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/saturating.h"
#include "src/base/text/quantity.h"
#include "src/jobs/generate/model_kind.h"
#include "src/report/text/format.h"
#include "src/synth/dlrm/dlrm_file.h"
#include "src/synth/dlrm/dlrm_job.h"

namespace etude {
namespace {

Result<DlrmModel> ReadDlrm(const std::string& model, const ModelOptions& options,
                           const RunContext& context) {
  if (const DlrmPreset* preset = FindPreset(DlrmPresets(), model)) return preset->model;
  if (!model.ends_with(".toml")) return tl::unexpected(UnknownModel(DlrmKind(), model));
  ETUDE_ASSIGN_OR_RETURN(const std::string text, TextOfModel(model, options, context.limits));
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
  plan.ranks = options.plan.data.value_or(plan.ranks);
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

// The places of tables, and the data that ranks hold permanently.
struct PlacementFacts {
  size_t replicated = 0;
  size_t by_rows = 0;
  size_t parts = 0;  // of others
  Bytes least{INT64_MAX};
  Bytes most;
};

PlacementFacts PlacementFactsOf(const DlrmModel& model, const DlrmPlan& plan) {
  const TablePlacement placement = PlaceTables(model, plan);
  PlacementFacts facts{.replicated = placement.replicated.size(),
                       .by_rows = placement.by_rows.size()};
  for (int64_t rank = 0; rank < plan.ranks; ++rank) {
    facts.parts += placement.parts[static_cast<size_t>(rank)].size();
    const Bytes held = StatesOfRank(model, plan, placement, rank).total();
    facts.least = std::min(facts.least, held);
    facts.most = std::max(facts.most, held);
  }
  return facts;
}

void WarnOfIdleTables(const ModelOptions& options, const DlrmModel& model, const DlrmPlan& plan,
                      const PlacementFacts& facts, const RunContext& context) {
  constexpr std::string_view kAllTables = "one rank has all tables";
  const bool alone = plan.ranks == 1;
  const int64_t widest =
      std::ranges::max_element(model.tables, {}, &EmbeddingTable::dimension)->dimension;
  const auto rows = std::to_array<IdleOption>({
      {"--replicate-tables", alone, kAllTables},
      {"--replicate-tables", !alone && facts.replicated == 0, "all tables are larger"},
      {"--split-rows", alone, kAllTables},
      {"--split-rows", !alone && facts.by_rows == 0, "no remaining table is larger"},
      {"--split-columns", plan.most_columns.value_or(0) >= widest, "no table has more columns"},
      {"--table-cost", alone, kAllTables},
      {"--bucket", alone, "one rank needs no gradient reduction"},
  });
  WarnOfIdle(options, rows, context);
}

std::string TextOfDlrm(const std::string& name, const DlrmModel& model, const DlrmPlan& plan,
                       const PlacementFacts& facts) {
  std::string text = fmt::format(
      "{}: {} parameters in {}, {} in dense layers, dp {}\ntables: {} replicated, {} split by "
      "rows, others in {}, each on one rank; weights, gradients and optimizer per rank: {}",
      name, FormatCount(static_cast<uint64_t>(TableParameters(model))),
      FormatCount(model.tables.size(), "table"),
      FormatCount(static_cast<uint64_t>(DenseParameters(model))), plan.ranks, facts.replicated,
      facts.by_rows, FormatCount(facts.parts, "part"), FormatBytes(facts.least));
  if (facts.most != facts.least) text += fmt::format(" to {}", FormatBytes(facts.most));
  return text;
}

nlohmann::ordered_json SettingsOfDlrm(const DlrmPlan& plan) {
  nlohmann::ordered_json json = {
      {"dp", plan.ranks},
      {"batch", plan.batch},
      {"replicate_tables", plan.replicate.count},
      {"table_cost", plan.cost == TableCost::kBytes ? "bytes" : "lookups"},
      {"phase", plan.training ? "training" : "inference"}};
  if (plan.split_rows) json["split_rows"] = plan.split_rows->count;
  if (plan.most_columns) json["split_columns"] = *plan.most_columns;
  if (!plan.training) return json;
  json["optimizer"] = plan.optimizer == DlrmOptimizer::kSgd ? "sgd" : "adagrad";
  json["bucket"] = plan.bucket.count;
  return json;
}

Result<GeneratedJob> MakeDlrm(const std::string& model, const ModelOptions& options,
                              const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const DlrmPlan plan, DlrmPlanOf(options));
  ETUDE_ASSIGN_OR_RETURN(const DlrmModel shapes, ReadDlrm(model, options, context));
  Result<StepJob> job = MakeDlrmJob(shapes, plan);
  if (!job) return MakeError(job.error().code, fmt::format("{}: {}", model, job.error().message));
  const PlacementFacts facts = PlacementFactsOf(shapes, plan);
  WarnOfIdleTables(options, shapes, plan, facts, context);
  return GeneratedJob{.job = *std::move(job),
                      .text = TextOfDlrm(model, shapes, plan, facts),
                      .facts = {{"table_parameters", TableParameters(shapes)},
                                {"tables", shapes.tables.size()},
                                {"dense_parameters", DenseParameters(shapes)},
                                {"phase", plan.training ? "training" : "inference"},
                                {"dp", plan.ranks},
                                {"tables_replicated", facts.replicated},
                                {"tables_by_rows", facts.by_rows},
                                {"table_parts", facts.parts},
                                {"least_states_bytes", facts.least.count},
                                {"most_states_bytes", facts.most.count}},
                      .step = {.item = "sample",
                               .items = SaturatingProduct({plan.ranks, plan.batch}),
                               .flops = std::nullopt,
                               .bubble = 0},
                      .batch = {.replicas = plan.ranks, .samples = plan.batch},
                      .settings = SettingsOfDlrm(plan)};
}

}  // namespace

ModelKind DlrmKind() {
  ModelKind kind{
      .name = "dlrm",
      .family = "recommendation",
      .options = {"--dp", "--bucket", "--batch", "--phase", "--optimizer", "--replicate-tables",
                  "--split-rows", "--split-columns", "--table-cost"},
      .presets = {},
      .others = {},
      .make = MakeDlrm};
  AddPresets(DlrmPresets(), kind);
  return kind;
}

}  // namespace etude

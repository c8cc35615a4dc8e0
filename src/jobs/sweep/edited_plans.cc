#include "src/jobs/sweep/edited_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/jobs/edits/plan_edit.h"
#include "src/jobs/generate/request_json.h"
#include "src/jobs/plan_file.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {
namespace {

// Reads the edits of a point as options of `etude generate`. Errors name the wrong one.
Result<PlanEdits> PlanEditsOf(const GenerateRequest& request,
                              const std::map<std::string, nlohmann::json>& settings) {
  PlanEdits edits;
  std::vector<std::string> words = {request.what, request.model};
  for (const auto& [key, value] : settings) {
    if (key == "keep") {
      edits.keep = value == "global-batch" ? KeptBatch::kGlobal : KeptBatch::kRank;
    } else if (key == "global_batch") {
      edits.global_batch = value.get<int64_t>();
    } else if (!value.is_boolean() || value.get<bool>()) {
      words.push_back(OptionOfJsonKey(key));
      if (!value.is_boolean()) words.push_back(WordOfJson(value));
    }
  }
  ETUDE_ASSIGN_OR_RETURN(edits.options, ParseGenerateWords(words));
  return edits;
}

}  // namespace

Result<const std::optional<EditedPlans::Source>*> EditedPlans::SourceOf(const std::string& path,
                                                                        const RunContext& context) {
  const auto known = sources_.find(path);
  if (known != sources_.end()) return &known->second;
  std::optional<Source> source;
  ETUDE_ASSIGN_OR_RETURN(const std::optional<FoundPlan> found,
                         FindPlanOfJob(std::vector<std::string>{path}, context));
  if (found && found->plan.request) {
    ETUDE_RETURN_IF_ERROR(CheckPlanOfJob(*found));
    RunContext quiet = context;
    quiet.warn = nullptr;
    ETUDE_ASSIGN_OR_RETURN(RequestedPlan plan, PlanOfRequest(*found->plan.request, quiet));
    source = Source{.request = *found->plan.request, .plan = std::move(plan)};
  }
  return &sources_.emplace(path, std::move(source)).first->second;
}

Status EditedPlans::Apply(SweepPoint& point, const RunContext& context) {
  SweepJobSource& job = point.job;
  if (job.path.empty() || job.what_if.empty()) return {};
  ETUDE_ASSIGN_OR_RETURN(const std::optional<Source>* const source, SourceOf(job.path, context));
  const auto placed = [&](const Error& error) {
    return MakeError(error.code == ErrorCode::kUsage ? ErrorCode::kBadInput : error.code,
                     fmt::format("{}: whatif: {}", point.name, error.message));
  };
  if (!*source) {
    for (const auto& [key, value] : job.what_if) {
      if (std::ranges::find(kRecordedEditKeys, key) != kRecordedEditKeys.end()) continue;
      const Result<PlanEdits> edits =
          PlanEditsOf({.what = "llm", .model = "model"}, {{key, value}});
      if (!edits) return placed(edits.error());
      return placed(NotGenerated(job.path, *edits).value());
    }
    return {};
  }
  const GenerateRequest& request = (*source)->request;
  const Result<PlanEdits> edits = PlanEditsOf(request, job.what_if);
  if (!edits) return placed(edits.error());
  auto edited = TryEdit(request, (*source)->plan, *edits, context);
  // The words of a plan that does not fit still identify the point.
  GenerateRequest made = edited ? *std::move(edited) : request;
  if (!edited) {
    Override(edits->options, made);
    job.misfit = edited.error().message;
    job.misfit_keys = edited.error().keys;
  }
  job.generate = {{"what", made.what}, {"model", made.model}};
  const nlohmann::ordered_json options = OptionsJson(made);
  for (const auto& [key, value] : options.items()) job.generate[key] = value;
  for (const RequestFile& file : FilesOf(made)) {
    if (*file.text) job.files[file.key] = **file.text;
  }
  const std::string place = point.places[job.path];
  for (const auto& [key, value] : job.generate) point.generate_places[key] = place;
  job.path.clear();
  job.what_if.clear();
  return {};
}

}  // namespace etude

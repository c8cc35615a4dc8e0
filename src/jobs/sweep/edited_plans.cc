#include "src/jobs/sweep/edited_plans.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/jobs/generate/request_json.h"
#include "src/jobs/plan_edit.h"
#include "src/jobs/plan_file.h"

namespace etude {
namespace {

// Keys of edits that recorded jobs support.
constexpr auto kOfRecordedJobs = std::to_array<std::string_view>(
    {"second", "sizes", "layers", "dp", "bucket", "first_bucket", "scale", "drop"});

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
      std::string& option = words.emplace_back("--" + key);
      std::ranges::replace(option, '_', '-');
      if (!value.is_boolean()) {
        words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
      }
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
      if (std::ranges::find(kOfRecordedJobs, key) != kOfRecordedJobs.end()) continue;
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
  for (const auto& [key, text] :
       {std::pair("model", made.options.model_text), std::pair("device", made.device_text),
        std::pair("measured", made.measured_text)}) {
    if (text) job.files[key] = *text;
  }
  const std::string place = point.places[job.path];
  for (const auto& [key, value] : job.generate) point.generate_places[key] = place;
  job.path.clear();
  job.what_if.clear();
  return {};
}

}  // namespace etude

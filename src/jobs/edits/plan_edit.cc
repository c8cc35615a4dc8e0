#include "src/jobs/edits/plan_edit.h"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/formats/io/atomic_file.h"
#include "src/jobs/generate/model_kind.h"
#include "src/jobs/generate/request_json.h"
#include "src/jobs/what_if.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using EditJson = nlohmann::ordered_json;

std::string Count(int64_t value) { return FormatCount(static_cast<uint64_t>(value)); }

// Returns the whole number of an option that is given.
std::optional<int64_t> NumberOf(GenerateRequest& request, std::string_view name) {
  const std::vector<GenerateOption> options = OptionsOf(request);
  const auto found = std::ranges::find(options, name, &GenerateOption::name);
  const auto* number = std::get_if<std::optional<int64_t>*>(&found->target);
  return number == nullptr ? std::nullopt : **number;
}

void SetNumber(GenerateRequest& request, std::string_view name, int64_t value) {
  const std::vector<GenerateOption> options = OptionsOf(request);
  const auto found = std::ranges::find(options, name, &GenerateOption::name);
  *std::get<std::optional<int64_t>*>(found->target) = value;
}

// Edits one request.
class PlanEditor {
 public:
  PlanEditor(const GenerateRequest& request, const RequestedPlan& plan, const RunContext& context)
      : request_(request),
        plan_(plan),
        kind_(*FindModelKind(request.what)),
        batch_option_(Takes("--sequences") ? "--sequences" : "--batch"),
        context_(context) {}

  Result<GenerateRequest> Run(const PlanEdits& edits) const {
    auto edited = Edited(edits);
    if (edited) return *std::move(edited);
    Error error = edited.error();
    const std::string nearest = Nearest(edits);
    if (!nearest.empty()) error.message += "; nearest possible: " + nearest;
    return tl::unexpected<Error>(std::move(error));
  }

  tl::expected<GenerateRequest, Misfit> Edited(const PlanEdits& edits) const {
    GenerateRequest edited = request_;
    Override(edits.options, edited);
    ETUDE_RETURN_IF_MISFIT(SetBatch(edits, edited));
    ETUDE_RETURN_IF_MISFIT(CheckGenerate(edited, context_));
    if (kind_.check == nullptr) {
      RunContext quiet = context_;
      quiet.warn = nullptr;
      const Result<RequestedPlan> plan = PlanOfRequest(edited, quiet);
      if (!plan) return tl::unexpected<Misfit>(AsMisfit(plan.error()));
    }
    return edited;
  }

 private:
  bool Takes(std::string_view option) const {
    return std::ranges::find(kind_.options, option) != kind_.options.end();
  }

  // Sets the micro-batches, or the samples in one, so that the global batch is the wanted one.
  Fits SetBatch(const PlanEdits& edits, GenerateRequest& edited) const {
    const GeneratedBatch& batch = plan_.batch;
    if (!edits.global_batch && edits.keep == KeptBatch::kRank) return {};
    const int64_t wanted = edits.global_batch.value_or(batch.replicas * batch.of_replica());
    const int64_t replicas = edited.options.plan.data.value_or(batch.replicas);
    GenerateRequest given = edits.options;
    const std::optional<int64_t> samples = NumberOf(given, batch_option_);
    const std::optional<int64_t> passes = given.options.plan.micro_batches;
    const auto refuse = [&](int64_t divisor, std::string_view what) {
      return MakeMisfit(
          {"plan.dp"},
          fmt::format("--dp: found {}, expected ranks that divide the global batch of {}{}",
                      replicas, Count(wanted),
                      divisor == 1 ? "" : fmt::format(" into {} of {}", what, divisor)));
    };
    if (wanted % replicas != 0) return refuse(1, "");
    const int64_t of_replica = wanted / replicas;
    const bool has_passes = Takes("--micro-batches") &&
                            (batch_option_ == "--sequences" || batch.micro_batches > 1 || passes);
    if (!has_passes) {
      if (samples && *samples != of_replica) return refuse(*samples, "samples per rank");
      SetNumber(edited, batch_option_, of_replica);
      return {};
    }
    if (samples || !passes) {
      const int64_t size = samples.value_or(batch.samples);
      const bool fits = of_replica % size == 0;
      if (fits && (!passes || *passes == of_replica / size)) {
        edited.options.plan.micro_batches = of_replica / size;
        return {};
      }
      if (samples || of_replica % batch.micro_batches != 0) {
        return refuse(size, "micro-batches");
      }
    }
    const int64_t count = passes.value_or(batch.micro_batches);
    if (of_replica % count != 0) return refuse(count, "micro-batches per rank, a number");
    edited.options.plan.micro_batches = count;
    SetNumber(edited, batch_option_, of_replica / count);
    return {};
  }

  // Returns the nearest values of each edited number that make a job: "--tp 4 or 8".
  std::string Nearest(const PlanEdits& edits) const {
    // Without a check, every try makes the whole job.
    const int64_t tries = kind_.check == nullptr ? 16 : 4096;
    std::vector<std::string> found;
    GenerateRequest given = edits.options;
    for (const GenerateOption& option : OptionsOf(given)) {
      const std::optional<int64_t> number = NumberOf(given, option.name);
      if (!number) continue;
      std::vector<std::string> values;
      for (const int64_t step : {-1, 1}) {
        for (int64_t i = 1; i <= tries; ++i) {
          const int64_t value = *number + step * i;
          if (value < option.bounds.least || value > option.bounds.most) break;
          PlanEdits other = edits;
          SetNumber(other.options, option.name, value);
          if (!Edited(other)) continue;
          values.push_back(std::to_string(value));
          break;
        }
      }
      if (values.empty()) continue;
      found.push_back(fmt::format("{} {}", option.name, fmt::join(values, " or ")));
    }
    return fmt::format("{}", fmt::join(found, ", or "));
  }

  const GenerateRequest& request_;
  const RequestedPlan& plan_;
  const ModelKind& kind_;
  const std::string_view batch_option_;
  const RunContext& context_;
};

// Returns the edits as given: "--tp 4".
std::vector<std::string> EditsAsGiven(const PlanEdits& edits) {
  std::vector<std::string> given;
  const EditJson options = OptionsJson(edits.options);
  for (const auto& [key, value] : options.items()) {
    const std::string option = OptionOfJsonKey(key);
    given.push_back(value.is_boolean() ? option : fmt::format("{} {}", option, WordOfJson(value)));
  }
  if (edits.keep == KeptBatch::kGlobal) given.emplace_back("--keep global-batch");
  if (edits.global_batch) given.push_back(fmt::format("--global-batch {}", *edits.global_batch));
  return given;
}

EditJson SideJson(const PlanSummary& plan) {
  EditJson json = {{"ranks", plan.facts.ranks},
                   {"nodes", plan.nodes},
                   {"item", plan.facts.item},
                   {"items", plan.facts.items},
                   {"memory_bytes", plan.facts.memory.peak.count}};
  const auto& capacity = plan.facts.capacity;
  json["capacity_bytes"] = capacity ? EditJson(capacity->count) : EditJson(nullptr);
  json["fits"] = capacity ? EditJson(plan.facts.memory.peak <= *capacity) : EditJson(nullptr);
  json["settings"] = plan.settings;
  return json;
}

// A setting that differs between two plans; null: a plan does not have it.
struct ChangedSetting {
  std::string key;
  EditJson before;
  EditJson after;
};

std::vector<ChangedSetting> ChangesOf(const EditedJob& job) {
  std::vector<ChangedSetting> changes;
  const EditJson& before = job.before.settings;
  const EditJson& after = job.after.settings;
  for (const auto& [key, value] : after.items()) {
    const EditJson old = before.value(key, EditJson());
    if (old != value) changes.push_back({key, old, value});
  }
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) changes.push_back({key, value, EditJson()});
  }
  return changes;
}

// Why recorded jobs do not support an edit, and the nearest one that they do.
struct RecordedLimit {
  std::string_view option;
  std::string_view reason;
  std::string_view nearest;
};

constexpr std::string_view kNoSplit =
    "a recording does not state how its operators and weights divide among ranks";
constexpr std::string_view kDataParallel =
    "--dp, which adds or resizes data-parallel ranks, --tp or --pp";
constexpr std::string_view kOneShape =
    "one recording does not state which sizes of its tensors follow from this one";
constexpr std::string_view kTwoSizes =
    "--second and --sizes, with a recording of another such size";
constexpr std::string_view kNoChunks = "stages of a recording have one chunk of layers";
constexpr std::string_view kSchedules = "--schedule gpipe or 1f1b";

constexpr auto kRecordedLimits = std::to_array<RecordedLimit>({
    {"--cp", kNoSplit, kDataParallel},
    {"--ep", kNoSplit, kDataParallel},
    {"--zero", kNoSplit, kDataParallel},
    {"--chunks", kNoChunks, kSchedules},
    {"--kv-heads", kOneShape, kTwoSizes},
    {"--head-size", kOneShape, kTwoSizes},
    {"--experts", kOneShape, kTwoSizes},
    {"--top-k", kOneShape, kTwoSizes},
    {"--expert-ffn", kOneShape, kTwoSizes},
    {"--sequences", "a recording does not state what its samples are", "--batch"},
    {"--image", kOneShape, kTwoSizes},
});

}  // namespace

std::vector<std::string> PlanEdits::Given() const {
  std::vector<std::string> names;
  const EditJson json = OptionsJson(options);
  for (const auto& [key, value] : json.items()) names.push_back(OptionOfJsonKey(key));
  return names;
}

tl::expected<GenerateRequest, Misfit> TryEdit(const GenerateRequest& request,
                                              const RequestedPlan& plan, const PlanEdits& edits,
                                              const RunContext& context) {
  return PlanEditor(request, plan, context).Edited(edits);
}

Status CheckPlanOfJob(const FoundPlan& found) {
  if (found.mismatch.empty()) return {};
  return BadInput(fmt::format(
      "{}: describes another job than its traces: {}; expected traces as `etude generate` wrote "
      "them. Generate the job again",
      found.path, found.mismatch));
}

Result<GenerateRequest> EditRequest(const GenerateRequest& request, const RequestedPlan& plan,
                                    const PlanEdits& edits, const RunContext& context) {
  return PlanEditor(request, plan, context).Run(edits);
}

Result<std::optional<EditedJob>> EditGeneratedJob(const std::vector<std::string>& paths,
                                                  const PlanEdits& edits, const std::string& output,
                                                  const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::optional<FoundPlan> found, FindPlanOfJob(paths, context));
  if (!found || !found->plan.request) return std::optional<EditedJob>();
  ETUDE_RETURN_IF_ERROR(CheckPlanOfJob(*found));
  const GenerateRequest& request = *found->plan.request;
  RunContext quiet = context;
  quiet.warn = nullptr;
  ETUDE_ASSIGN_OR_RETURN(const RequestedPlan plan, PlanOfRequest(request, quiet));
  ETUDE_ASSIGN_OR_RETURN(GenerateRequest edited, EditRequest(request, plan, edits, context));
  EditedJob job{
      .before = {.facts = plan.facts, .settings = plan.settings, .nodes = found->plan.nodes},
      .after = {},
      .written = {},
      .edits = EditsAsGiven(edits)};
  edited.output = output;
  edited.to = "classes";
  ETUDE_ASSIGN_OR_RETURN(job.written, GenerateJob(edited, context));
  job.after = {.facts = *job.written.plan,
               .settings = job.written.settings,
               .nodes = job.written.classes->nodes};
  ETUDE_RETURN_IF_ERROR(
      ReplaceFile(fmt::format("{}/{}", output, kChangesFile), JsonText(ToJson(job, paths))));
  return std::optional<EditedJob>(std::move(job));
}

EditJson ToJson(const EditedJob& job, const std::vector<std::string>& paths) {
  const std::vector<ChangedSetting> changes = ChangesOf(job);
  EditJson edits = EditJson::array();
  for (const std::string& edit : job.edits) {
    EditJson& row = edits.emplace_back();
    row = {{"edit", edit}, {"certainty", Name(Certainty::kExact)}};
    const std::string key = JsonKeyOf(edit.substr(0, edit.find(' ')));
    const auto found = std::ranges::find(changes, key, &ChangedSetting::key);
    if (!job.after.settings.contains(key)) continue;  // --keep: says how others follow
    row["before"] =
        found != changes.end() ? found->before : job.before.settings.value(key, EditJson());
    row["after"] = job.after.settings[key];
  }
  return {{"format", "etude-whatif"},
          {"version", 1},
          {"sources", paths},
          {"ranks", job.after.facts.ranks},
          {"edits", std::move(edits)},
          {"notes", EditJson::array()},
          {"before", SideJson(job.before)},
          {"after", SideJson(job.after)}};
}

std::string ToText(const EditedJob& job, const std::string& output) {
  std::string text = fmt::format("{}: ", fmt::join(job.edits, " "));
  std::vector<std::string> changes;
  for (const ChangedSetting& change : ChangesOf(job)) {
    const auto value = [](const EditJson& json) {
      return json.is_null() ? std::string("none") : WordOfJson(json);
    };
    changes.push_back(
        fmt::format("{} {} instead of {}", change.key, value(change.after), value(change.before)));
  }
  text += changes.empty() ? "the plan stays" : fmt::format("{}", fmt::join(changes, ", "));
  text += fmt::format(" ({})\n", Name(Certainty::kExact));
  const PlanFacts& before = job.before.facts;
  const PlanFacts& after = job.after.facts;
  const auto fits = [](const PlanFacts& facts) -> std::string {
    if (!facts.capacity) return "";
    return fmt::format(" ({} {}, {})",
                       facts.memory.peak <= *facts.capacity ? "fits" : "does not fit on",
                       facts.device, FormatBytes(*facts.capacity));
  };
  TextTable table({TextTable::Align::kLeft, TextTable::Align::kRight, TextTable::Align::kRight});
  table.Row({"", "before", "after"});
  table.Row({"ranks", Count(before.ranks), Count(after.ranks)});
  table.Row({"nodes", FormatCount(job.before.nodes), FormatCount(job.after.nodes)});
  table.Row({after.item + "s of a step", Count(before.items), Count(after.items)});
  table.Row({"memory of the largest rank", FormatBytes(before.memory.peak) + fits(before),
             FormatBytes(after.memory.peak) + fits(after)});
  return text + table.Text() +
         fmt::format("wrote {}: {}\n", output, ClassesText(*job.written.classes));
}

tl::unexpected<Error> NotGenerated(const std::string& path, const PlanEdits& edits) {
  std::vector<std::string> given = edits.Given();
  if (given.empty()) given.emplace_back(edits.global_batch ? "--global-batch" : "--keep");
  for (const std::string& option : given) {
    const auto* const found = std::ranges::find(kRecordedLimits, option, &RecordedLimit::option);
    if (found == kRecordedLimits.end()) continue;
    return BadInput(fmt::format(
        "{}: {} requires a job of `etude generate` with its plan, because {}; nearest possible: {}",
        path, option, found->reason, found->nearest));
  }
  return BadInput(
      fmt::format("{}: {} requires a job of `etude generate` with its plan", path, given.front()));
}

}  // namespace etude

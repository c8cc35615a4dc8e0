#include "src/jobs/sweep/sweep.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/container/guarded.h"
#include "src/base/machine/threads.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/io/toml_text.h"
#include "src/jobs/generate/generate_job.h"
#include "src/jobs/generate/model_kind.h"
#include "src/jobs/machine_files.h"
#include "src/jobs/output_files.h"
#include "src/jobs/sim_warnings.h"
#include "src/jobs/sweep/generate_call.h"
#include "src/report/page/page.h"
#include "src/report/tables/simulated/sim_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/workload.h"
#include "src/sim/result/account.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/diagnosis.h"

namespace etude {
namespace {

constexpr uint64_t kMostSpecBytes = uint64_t{1} << 20;

// Returns whether GenerateJob would make a job of these words, as far as this is known without
// making it.
Fits FitsGenerate(const GenerateCall& call, const RunContext& context) {
  const Result<GenerateRequest> request = RequestOf(call);
  if (!request) return MakeMisfit({}, request.error().message);
  return CheckGenerate(*request, context);
}

// Returns the error for the missing file of a point's job, with its place in the spec.
tl::unexpected<Error> PlacedJobError(const SweepPoint& point, const Error& error) {
  std::map<std::string, std::string> places;
  if (const auto call = GenerateCallOf(point)) places = call->places;
  places.insert(point.places.begin(), point.places.end());
  for (const auto& [path, place] : places) {
    if (IsThere(path) || IsThere(path + ".0.et")) continue;
    return MakeError(error.code, fmt::format("{}: {}", place, error.message));
  }
  return tl::unexpected<Error>(error);
}

// Shows progress. The remaining points are assumed to take the average time so far.
void ShowProgress(size_t done, size_t total, double seconds, const RunContext& context) {
  const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
  const Nanos rest{static_cast<int64_t>(left) * 1'000'000'000};
  context.Progress(fmt::format("points simulated, about {} left", FormatTime(rest)), done, total);
}

}  // namespace

Sweep::Sweep(SweepRequest request)
    : request_(std::move(request)), jobs_(request_.folder, request_.strict) {
  results_.order = request_.order;
}

Status Sweep::Prepare(const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(Plan(context));
  if (request_.order == SweepOrder::kCost && !spec_.prices) {
    return BadInput(fmt::format("{}: --by cost requires [prices]", request_.spec));
  }
  if (!request_.dry_run) {
    for (const std::string& output :
         {request_.report, InFolder("sweep.json"), InFolder("sweep.csv")}) {
      ETUDE_RETURN_IF_ERROR(CheckIsNoInput(output));
    }
  }
  return request_.folder.empty() ? Status() : TakeKept(context);
}

Status Sweep::Plan(const RunContext& context) {
  const Limits& limits = context.limits;
  ETUDE_ASSIGN_OR_RETURN(const std::string text,
                         ReadTomlText(request_.spec, "a sweep", kMostSpecBytes, limits));
  ETUDE_ASSIGN_OR_RETURN(spec_, ParseSweep(text, request_.spec, GenerateKeys()));
  ETUDE_RETURN_IF_ERROR(RemoveImpossiblePlans(context));
  planner_.emplace(spec_, request_.spec, limits);
  for (const SweepAxis& axis : spec_.axes) results_.axes.push_back(axis.name);
  results_.path = request_.spec;
  results_.points = spec_.point_count();
  std::map<std::string, size_t> known;  // tasks by identity
  for (size_t i = 0; i < results_.points; ++i) {
    ETUDE_RETURN_IF_ERROR(PlanPoint(i, known, context));
  }
  KeepShard();
  return {};
}

Status Sweep::RemoveImpossiblePlans(const RunContext& context) {
  if (!spec_.plans) return {};
  SweepPlans& plans = results_.plans.emplace();
  plans.combinations = spec_.plans->combinations;
  plans.refusals = spec_.plans->refusals;
  const auto axis = std::ranges::find(spec_.axes, kPlanAxis, &SweepAxis::name);
  std::map<std::string, PlanRefusals> refused;  // by the setting that does not fit
  SweepPlanner planner(spec_, request_.spec, context.limits);
  const auto index = static_cast<size_t>(axis - spec_.axes.begin());
  std::vector<SweepChoice> kept;
  for (size_t i = 0; i < axis->choices.size(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(const std::optional<Misfit> misfit,
                           MisfitOf(planner, index, i, context));
    if (!misfit) {
      kept.push_back(axis->choices[i]);
      continue;
    }
    const std::string key = misfit->keys.empty() ? "" : misfit->keys.front();
    PlanRefusals& refusal = refused[key];
    if (refusal.count++ == 0) {
      refusal.reason = key.empty() ? "conflicting options"
                                   : fmt::format("{} does not fit", key.substr(key.find('.') + 1));
      refusal.example = fmt::format("{}: {}", axis->choices[i].label, misfit->message);
    }
  }
  for (auto& [key, refusal] : refused) plans.refusals.push_back(std::move(refusal));
  plans.kept = kept.size();
  if (kept.empty()) {
    return BadInput(fmt::format("{}: plans: none of {} is possible; first: {}", request_.spec,
                                FormatCount(axis->choices.size(), "plan"),
                                plans.refusals.back().example));
  }
  axis->choices = std::move(kept);
  return {};
}

Result<std::optional<Misfit>> Sweep::MisfitOf(SweepPlanner& planner, size_t plan_axis,
                                              size_t choice, const RunContext& context) {
  const auto is_of_jobs = [](const SweepAxis& axis) {
    return std::ranges::any_of(axis.choices, [](const SweepChoice& one) {
      return std::ranges::any_of(one.settings, [](const SweepSetting& setting) {
        return setting.path[0] == "generate" || setting.path[0] == "job" ||
               setting.path[0] == "whatif";
      });
    });
  };
  std::vector<size_t> counts;  // numbers of choices to examine, by axis
  for (const SweepAxis& axis : spec_.axes) {
    counts.push_back(is_of_jobs(axis) ? axis.choices.size() : 1);
  }
  counts[plan_axis] = 1;
  std::vector<size_t> choices(counts.size());
  std::optional<Misfit> first;
  while (true) {
    choices[plan_axis] = choice;
    ETUDE_ASSIGN_OR_RETURN(const SweepPoint point,
                           PointAt(planner, spec_.PointOf(choices), context));
    if (point.job.generate.empty()) return std::optional<Misfit>();
    ETUDE_RETURN_IF_ERROR(CheckGenerateOf(point));
    ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
    const Fits fits = point.job.misfit.empty()
                          ? FitsGenerate(call, context)
                          : MakeMisfit(point.job.misfit_keys, point.job.misfit);
    if (fits || fits.error().code == ErrorCode::kIo) return std::optional<Misfit>();
    if (!first) first = fits.error();
    choices[plan_axis] = 0;
    size_t axis = 0;
    while (axis < counts.size() && ++choices[axis] == counts[axis]) choices[axis++] = 0;
    if (axis == counts.size()) return first;
  }
}

Result<SweepPoint> Sweep::PointAt(SweepPlanner& planner, size_t index, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(SweepPoint point, planner.PointAt(index));
  ETUDE_RETURN_IF_ERROR(plans_.Apply(point, context));
  return point;
}

Status Sweep::PlanPoint(size_t index, std::map<std::string, size_t>& known,
                        const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const SweepPoint point, PointAt(*planner_, index, context));
  ETUDE_RETURN_IF_ERROR(CheckGenerateOf(point));
  ETUDE_ASSIGN_OR_RETURN(const SweepMachine made, MachineOf(point));
  const int64_t npus = HasRanksOfJob(point) ? 0 : made.machine.npus();
  SweepRow row{.point = index,
               .labels = point.labels,
               .npus = npus,
               .bandwidth = {},
               .cost = {},
               .capacity = point.capacity,
               .outcome = {}};
  if (npus > 0) row.bandwidth = LinkBandwidthOf(made.machine);
  if (spec_.prices && npus > 0) {
    const Result<double> cost = CostOf(made.machine, *spec_.prices);
    if (!cost) return BadInput(fmt::format("{}: {}", point.name, cost.error().message));
    row.cost = *cost;
  }
  const Result<std::string> job_hash = jobs_.HashOf(point, npus, context);
  if (!job_hash) return PlacedJobError(point, job_hash.error());
  std::string programs;
  for (const auto& [type, name] : made.collectives) {
    ETUDE_ASSIGN_OR_RETURN(
        const std::string hash,
        name.ends_with(".json")
            ? HashOfFile(name, context.limits)
            : HashOfPrefix(name, CountPrograms(name, made.machine), context.limits));
    programs += fmt::format("{} {} ", Name(type), hash);
  }
  std::string identity = SweepIdentity(point, *job_hash, programs);
  const auto [found, is_new] = known.emplace(identity, tasks_.size());
  if (is_new) {
    tasks_.push_back({.identity = std::move(identity), .job_hash = *job_hash, .rows = {}});
  }
  tasks_[found->second].rows.push_back(index);
  results_.rows.push_back(std::move(row));
  return {};
}

void Sweep::KeepShard() {
  const SweepShard& shard = request_.shard;
  if (shard.of == 1) return;
  std::vector<Task> kept;
  std::vector<size_t> rows;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (static_cast<int64_t>(i) % shard.of != shard.number - 1) continue;
    rows.insert(rows.end(), tasks_[i].rows.begin(), tasks_[i].rows.end());
    kept.push_back(std::move(tasks_[i]));
  }
  std::ranges::sort(rows);
  std::vector<SweepRow> mine;
  for (const size_t row : rows) mine.push_back(std::move(results_.rows[row]));
  for (Task& task : kept) {
    for (size_t& row : task.rows) {
      row = static_cast<size_t>(std::ranges::lower_bound(rows, row) - rows.begin());
    }
  }
  tasks_ = std::move(kept);
  results_.rows = std::move(mine);
}

Status Sweep::CheckIsNoInput(const std::string& output) const {
  std::error_code error;
  if (output.empty() || !std::filesystem::exists(output, error)) return {};
  ETUDE_RETURN_IF_ERROR(CheckOutput(output, {request_.spec}));
  for (const std::string& file : planner_->files()) {
    ETUDE_RETURN_IF_ERROR(CheckOutput(output, {file}));
  }
  for (const std::string& file : jobs_.files()) {
    ETUDE_RETURN_IF_ERROR(CheckOutput(output, {file}));
  }
  return {};
}

Status Sweep::TakeKept(const RunContext& context) {
  for (const Task& task : tasks_) {
    const std::string path = PointPath(task);
    std::error_code error;
    const bool is_kept = std::filesystem::exists(path, error);
    if (error) return MakeError(ErrorCode::kIo, path + ": " + error.message());
    if (!is_kept) continue;
    ETUDE_RETURN_IF_ERROR(CheckRegular(path));
    const auto text = ReadWholeFile(path, context.limits, kMostSpecBytes);
    std::optional<SweepOutcome> outcome;
    if (text) outcome = ReadSweepFile(*text, task.identity);
    if (!outcome) {
      context.Warn(fmt::format("{}: damaged; its point is simulated again", path));
      continue;
    }
    // Files or options that caused the refusal may have changed.
    if (outcome->state == SweepOutcome::State::kRefused) continue;
    SetOutcome(task, *outcome);
  }
  return {};
}

std::string Sweep::PointPath(const Task& task) const {
  return fmt::format("{}/points/{}", request_.folder, SweepFileName(task.identity));
}

void Sweep::SetOutcome(const Task& task, const SweepOutcome& outcome) {
  for (const size_t index : task.rows) {
    SweepRow& row = results_.rows[index];
    row.outcome = outcome;
    if (!outcome.ranks) continue;
    row.npus = *outcome.ranks;
    if (spec_.prices) row.cost = static_cast<double>(row.npus) * spec_.prices->npu;
  }
}

size_t Sweep::RowsLeft() const {
  return static_cast<size_t>(std::ranges::count_if(
      results_.rows, [](const SweepRow& row) { return !row.outcome.has_value(); }));
}

Result<SweepCounts> Sweep::Simulate(const RunContext& context) {
  jobs_.RemoveAbandoned();
  std::vector<const Task*> open;
  for (const Task& task : tasks_) {
    if (!results_.rows[task.rows.front()].outcome) open.push_back(&task);
  }
  if (open.empty()) return SweepCounts();
  // Points of one job follow each other, so that it is read once.
  std::ranges::stable_sort(open, {}, &Task::job_hash);
  ETUDE_RETURN_IF_ERROR(CheckNoLink(request_.folder + "/points"));
  ETUDE_RETURN_IF_ERROR(MakeFolder(request_.folder + "/points"));
  RunTasks(open, context);
  if (error_) return tl::unexpected<Error>(*error_);
  if (context.stopped()) {
    return MakeError(
        ErrorCode::kInterrupted,
        fmt::format("interrupted with {} of {} done; repeat the command to continue",
                    results_.rows.size() - RowsLeft(), FormatCount(results_.rows.size(), "point")));
  }
  const auto is_refused = [&](const Task* task) {
    return results_.rows[task->rows.front()].outcome->state == SweepOutcome::State::kRefused;
  };
  const auto is_excluded = [&](const Task* task) {
    return results_.rows[task->rows.front()].is_excluded();
  };
  const auto refused = static_cast<size_t>(std::ranges::count_if(open, is_refused));
  const auto excluded = static_cast<size_t>(std::ranges::count_if(open, is_excluded));
  return SweepCounts{
      .simulated = open.size() - refused - excluded, .refused = refused, .excluded = excluded};
}

void Sweep::RunTasks(const std::vector<const Task*>& open, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<size_t> next = 0;
  size_t done = 0;
  const auto loop = [&] {
    std::shared_ptr<const SimJob> last;  // keeps the job for the next point
    while (!context.stopped()) {
      const size_t i = next++;
      if (i >= open.size()) return;
      // A thread must not throw.
      const Status status = Guarded([&] { return RunTask(*open[i], last, context); });
      const std::lock_guard lock(mutex_);
      if (!status) {
        if (status.error().code != ErrorCode::kInterrupted && !error_) error_ = status.error();
        if (error_) next = open.size();
        return;
      }
      ++done;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      ShowProgress(done, open.size(), spent.count(), context);
    }
  };
  RunOnThreads(request_.threads, open.size(), loop);
}

Status Sweep::RunTask(const Task& task, std::shared_ptr<const SimJob>& last,
                      const RunContext& context) {
  RunContext of_task = context;
  of_task.progress = nullptr;
  of_task.warn = [&](std::string_view text) {
    const std::lock_guard lock(mutex_);
    // A job may be read again for a later point.
    if (said_.emplace(text).second) context.Warn(text);
  };
  Result<SweepOutcome> outcome = OutcomeOf(task, last, of_task);
  if (!outcome) {
    // An option of the specification may be invalid for this point's job.
    const ErrorCode code = outcome.error().code;
    if (code != ErrorCode::kBadInput && code != ErrorCode::kUsage) {
      return tl::unexpected<Error>(outcome.error());
    }
    outcome = SweepOutcome{.state = SweepOutcome::State::kRefused,
                           .why = outcome.error().message,
                           .times = {},
                           .notes = {}};
  }
  // Constraints may change, so excluded points are not kept.
  if (outcome->state != SweepOutcome::State::kExcluded) {
    ETUDE_RETURN_IF_ERROR(ReplaceFile(PointPath(task), SweepFileText(task.identity, *outcome)));
  }
  const std::lock_guard lock(mutex_);
  SetOutcome(task, *outcome);
  return {};
}

Result<std::optional<PlanFacts>> Sweep::ViolatingPlan(const Task& task, const SweepPoint& point,
                                                      const RunContext& context) const {
  const bool has_plan = spec_.constraints && !point.job.generate.empty() &&
                        point.job.misfit.empty() &&
                        FindModelKind(point.job.generate.at("what").get<std::string>()) != nullptr;
  if (!has_plan) return std::optional<PlanFacts>();
  ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
  ETUDE_ASSIGN_OR_RETURN(const GenerateRequest request, RequestOf(call));
  RunContext quiet = context;
  quiet.warn = nullptr;
  ETUDE_ASSIGN_OR_RETURN(RequestedPlan plan, PlanOfRequest(request, quiet));
  const bool violates = std::ranges::all_of(task.rows, [&](size_t row) {
    return !ViolationOf(*spec_.constraints, results_.rows[row], plan.facts).empty();
  });
  if (!violates) return std::optional<PlanFacts>();
  return std::optional<PlanFacts>(std::move(plan.facts));
}

Result<SweepOutcome> Sweep::OutcomeOf(const Task& task, std::shared_ptr<const SimJob>& last,
                                      const RunContext& context) {
  const auto plan = [&] {
    const std::lock_guard lock(mutex_);
    return PointAt(*planner_, results_.rows[task.rows.front()].point, context);
  };
  ETUDE_ASSIGN_OR_RETURN(const SweepPoint point, plan());
  const bool has_ranks_of_job = HasRanksOfJob(point);
  SweepMachine made;  // with as many NPUs as the job has ranks, it is made when they are known
  if (!has_ranks_of_job) {
    ETUDE_ASSIGN_OR_RETURN(made, MachineOf(point));
  }
  const int64_t npus = has_ranks_of_job ? 0 : made.machine.npus();
  ETUDE_RETURN_IF_ERROR(
      ReadCollectives(made.collectives, /*config=*/"", request_.strict, context, made.machine));
  ETUDE_ASSIGN_OR_RETURN(const std::optional<PlanFacts> violating,
                         ViolatingPlan(task, point, context));
  if (violating) {
    return SweepOutcome{.state = SweepOutcome::State::kExcluded,
                        .why = "",
                        .times = {},
                        .notes = {},
                        .plan = violating};
  }
  ETUDE_ASSIGN_OR_RETURN(last, jobs_.Read(point, task.job_hash, npus, context));
  const SimWorkload& workload = last->workload;
  const auto ranks = static_cast<int64_t>(workload.ranks.size());
  if (has_ranks_of_job) {
    ETUDE_ASSIGN_OR_RETURN(made, MachineOf(point, ranks));
  }
  ETUDE_RETURN_IF_ERROR(CheckRoofline("system", made.machine, workload));
  ETUDE_ASSIGN_OR_RETURN(
      const SimResult result,
      etude::Simulate(made.machine, workload,
                      {.name = NamesOfRanks(last->prefix), .context = &context}));
  if (result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
  SweepOutcome outcome;
  if (last->plan && last->plan->ranks == ranks) outcome.plan = last->plan;
  if (HasRanksOfJob(point)) outcome.ranks = ranks;
  outcome.notes = last->warnings;
  outcome.notes.insert(outcome.notes.end(), last->notes.begin(), last->notes.end());
  RunContext notes;
  notes.warn = [&](std::string_view text) { outcome.notes.emplace_back(text); };
  WarnOfSilences(made.machine, {.system = "system", .memory = "memory"}, workload, result, notes);
  const Arrivals arrivals(made.machine, workload, result);
  if (const auto diagnosis = Diagnose(workload, result, arrivals)) {
    outcome.state = SweepOutcome::State::kUnfinished;
    const auto name = [](int64_t rank) { return fmt::format("rank {}", rank); };
    outcome.why = fmt::format("{}", fmt::join(ToLines(*diagnosis, name), "; "));
  } else {
    const SimAccount account = AccountOf(workload, result, arrivals);
    const SimTimes mean = MeanOf(account).times;
    outcome.times = SweepTimes{.step = account.step,
                               .compute = mean.compute,
                               .exposed_communication = mean.exposed_communication,
                               .exposed_memory = mean.exposed_memory,
                               .idle = mean.idle()};
    std::ranges::copy(DoubtfulTimes(made.machine, account), std::back_inserter(outcome.notes));
    if (made.energy) {
      ETUDE_ASSIGN_OR_RETURN(const StepEnergy energy,
                             EnergyOf(*made.energy, made.machine, result, account));
      outcome.energy = energy.total();
      std::ranges::copy(energy.notes, std::back_inserter(outcome.notes));
    }
  }
  return outcome;
}

Result<SweepResults> Sweep::Finish() {
  results_.is_constrained = spec_.constraints.has_value();
  if (spec_.constraints) Exclude(*spec_.constraints, results_.rows);
  const bool is_whole = results_.rows.size() == results_.points;
  // The front requires a whole sweep.
  if (is_whole) {
    results_.measures = MeasuresOf(spec_, results_.rows);
    MarkFront(results_.measures, results_.rows);
  }
  if (request_.dry_run) return std::move(results_);
  if (is_whole) {
    ETUDE_RETURN_IF_ERROR(ReplaceFile(InFolder("sweep.json"), JsonText(SweepJson(results_))));
    ETUDE_RETURN_IF_ERROR(ReplaceFile(InFolder("sweep.csv"), ToCsv(SweepPointTable(results_))));
  }
  if (!request_.report.empty()) {
    ETUDE_RETURN_IF_ERROR(WriteFile(request_.report, ToHtml(SweepPage(results_))));
  }
  return std::move(results_);
}

std::string Sweep::InFolder(std::string_view name) const {
  return fmt::format("{}/{}", request_.folder, name);
}

Result<SweepResults> RunSweep(const SweepRequest& request, const RunContext& context) {
  if (request.folder.empty() && !request.dry_run) {
    return MakeError(ErrorCode::kUsage, "sweep: missing folder of results");
  }
  Sweep sweep(request);
  ETUDE_RETURN_IF_ERROR(sweep.Prepare(context));
  if (!request.dry_run) {
    const auto counts = sweep.Simulate(context);
    if (!counts) return tl::unexpected<Error>(counts.error());
  }
  return sweep.Finish();
}

}  // namespace etude

#include "src/cli/app/commands.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/guarded.h"
#include "src/base/machine/threads.h"
#include "src/base/sha256.h"
#include "src/base/text/quantity.h"
#include "src/cli/app/options.h"
#include "src/cli/app/stop_signal.h"
#include "src/cli/generate/generate.h"
#include "src/cli/simulate/sweep_generate.h"
#include "src/cli/simulate/sweep_jobs.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/io/toml_text.h"
#include "src/jobs/output_files.h"
#include "src/jobs/sim_warnings.h"
#include "src/report/page/page.h"
#include "src/report/tables/sweep_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/workload.h"
#include "src/sim/result/account.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/diagnosis.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_result.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {
namespace {

constexpr uint64_t kMostSpecBytes = uint64_t{1} << 20;

// Points that are simulated from the same, and thus once.
struct SweepTask {
  std::string identity;
  std::string job_hash;
  std::vector<size_t> rows;  // at least one
};

// "--shard 3/8": every eighth task, from the third on.
struct Shard {
  int64_t number = 1;  // from 1
  int64_t of = 1;
};

Result<Shard> ParseShard(const std::string& text) {
  const size_t slash = text.find('/');
  const auto number = ParseWhole(std::string_view(text).substr(0, slash));
  const auto of = slash == std::string::npos ? std::nullopt
                                             : ParseWhole(std::string_view(text).substr(slash + 1));
  if (!number || !of || *number < 1 || *of < *number) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--shard: found '{}', expected I/N with I from 1 to N", text));
  }
  return Shard{.number = *number, .of = *of};
}

// All that a sweep is made of, and where its points are kept.
class Sweep {
 public:
  Sweep(std::string spec, std::string folder, const Console& console)
      : path_(std::move(spec)),
        folder_(std::move(folder)),
        console_(console),
        jobs_(folder_, console) {}

  // Makes all points of the shard; what is kept of them counts.
  Status Plan(const Shard& shard) {
    const Limits& limits = console_.context().limits;
    ETUDE_ASSIGN_OR_RETURN(const std::string text,
                           ReadTomlText(path_, "a sweep", kMostSpecBytes, limits));
    ETUDE_ASSIGN_OR_RETURN(spec_, ParseSweep(text, path_, GenerateKeys()));
    ETUDE_RETURN_IF_ERROR(RemoveImpossiblePlans());
    planner_.emplace(spec_, path_, limits);
    for (const SweepAxis& axis : spec_.axes) results_.axes.push_back(axis.name);
    results_.path = path_;
    results_.points = spec_.point_count();
    std::map<std::string, size_t> known;  // tasks by identity
    for (size_t i = 0; i < results_.points; ++i) {
      ETUDE_RETURN_IF_ERROR(PlanPoint(i, known));
    }
    KeepShard(shard);
    return {};
  }

  // Refuses with kUsage to write to `output` what it is made of.
  Status CheckIsNoInput(const std::string& output) const {
    std::error_code error;
    if (output.empty() || !std::filesystem::exists(output, error)) return {};
    ETUDE_RETURN_IF_ERROR(CheckOutput(output, {path_}));
    for (const std::string& file : planner_->files()) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(output, {file}));
    }
    for (const std::string& file : jobs_.files()) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(output, {file}));
    }
    return {};
  }

  // Takes the outcomes that the folder has. Files that are damaged count as none.
  Status TakeKept() {
    for (const SweepTask& task : tasks_) {
      const std::string path = PointPath(task);
      std::error_code error;
      const bool is_kept = std::filesystem::exists(path, error);
      if (error) return MakeError(ErrorCode::kIo, path + ": " + error.message());
      if (!is_kept) continue;
      ETUDE_RETURN_IF_ERROR(CheckRegular(path));
      const auto text = ReadWholeFile(path, console_.context().limits, kMostSpecBytes);
      std::optional<SweepOutcome> outcome;
      if (text) outcome = ReadSweepFile(*text, task.identity);
      if (!outcome) {
        console_.context().Warn(fmt::format("{}: is damaged, its point is simulated again", path));
        continue;
      }
      // What refused it may lie in files or options that are others now.
      if (outcome->state == SweepOutcome::State::kRefused) continue;
      SetOutcome(task, *outcome);
    }
    return {};
  }

  // Simulates what is not known, on so many threads at once (0: as many as there are cores), until
  // `stop` is set.
  // Returns what to say of it; kInterrupted when stopped. Points that are done are kept.
  Result<std::string> Simulate(int64_t threads, const std::atomic<bool>* stop) {
    stop_ = stop;
    jobs_.RemoveAbandoned();
    std::vector<const SweepTask*> open;
    for (const SweepTask& task : tasks_) {
      if (!results_.rows[task.rows.front()].outcome) open.push_back(&task);
    }
    if (open.empty()) return "all points are known";
    // Those of one job after each other, so that it is read once.
    std::ranges::stable_sort(open, {}, &SweepTask::job_hash);
    ETUDE_RETURN_IF_ERROR(CheckNoLink(folder_ + "/points"));
    ETUDE_RETURN_IF_ERROR(MakeFolder(folder_ + "/points"));
    RunTasks(open, threads);
    if (error_) return tl::unexpected<Error>(*error_);
    if (*stop_) {
      return MakeError(ErrorCode::kInterrupted,
                       fmt::format("interrupted with {} of {} done: the same command goes on",
                                   results_.rows.size() - RowsLeft(),
                                   FormatCount(results_.rows.size(), "point")));
    }
    const auto is_refused = [&](const SweepTask* task) {
      return results_.rows[task->rows.front()].outcome->state == SweepOutcome::State::kRefused;
    };
    const auto refused = static_cast<size_t>(std::ranges::count_if(open, is_refused));
    std::string said = fmt::format("{} simulated", FormatCount(open.size() - refused, "point"));
    if (refused > 0) said += fmt::format(", {} refused", refused);
    return said;
  }

  bool has_prices() const { return spec_.prices.has_value(); }
  void RankBy(SweepOrder order) { results_.order = order; }

  size_t RowsLeft() const {
    return static_cast<size_t>(std::ranges::count_if(
        results_.rows, [](const SweepRow& row) { return !row.outcome.has_value(); }));
  }

  // The front is of whole sweeps.
  const SweepResults& Finish() {
    if (results_.rows.size() != results_.points) return results_;
    results_.measures = MeasuresOf(spec_, results_.rows);
    MarkFront(results_.measures, results_.rows);
    return results_;
  }

 private:
  // Takes plans that no model of the sweep can have out of the axis of [[plans]], and counts them.
  Status RemoveImpossiblePlans() {
    if (!spec_.plans) return {};
    SweepPlans& plans = results_.plans.emplace();
    plans.combinations = spec_.plans->combinations;
    plans.refusals = spec_.plans->refusals;
    const auto axis = std::ranges::find(spec_.axes, kPlanAxis, &SweepAxis::name);
    std::map<std::string, PlanRefusals> refused;  // by the setting that does not fit
    SweepPlanner planner(spec_, path_, console_.context().limits);
    const auto index = static_cast<size_t>(axis - spec_.axes.begin());
    std::vector<SweepChoice> kept;
    for (size_t i = 0; i < axis->choices.size(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(const std::optional<Misfit> misfit, MisfitOf(planner, index, i));
      if (!misfit) {
        kept.push_back(axis->choices[i]);
        continue;
      }
      const std::string key = misfit->keys.empty() ? "" : misfit->keys.front();
      PlanRefusals& refusal = refused[key];
      if (refusal.count++ == 0) {
        refusal.reason = key.empty()
                             ? "options do not fit together"
                             : fmt::format("{} does not fit", key.substr(key.find('.') + 1));
        refusal.example = fmt::format("{}: {}", axis->choices[i].label, misfit->message);
      }
    }
    for (auto& [key, refusal] : refused) plans.refusals.push_back(std::move(refusal));
    plans.kept = kept.size();
    if (kept.empty()) {
      return BadInput(fmt::format("{}: plans: none of {} is possible, first {}", path_,
                                  FormatCount(axis->choices.size(), "plan"),
                                  plans.refusals.back().example));
    }
    axis->choices = std::move(kept);
    return {};
  }

  // Why a choice of the axis of [[plans]] makes no job with any of what other axes say of jobs;
  // nullopt: with one of them it does, or that shows only when jobs are made.
  Result<std::optional<Misfit>> MisfitOf(SweepPlanner& planner, size_t plan_axis, size_t choice) {
    const auto is_of_jobs = [](const SweepAxis& axis) {
      return std::ranges::any_of(axis.choices, [](const SweepChoice& one) {
        return std::ranges::any_of(one.settings, [](const SweepSetting& setting) {
          return setting.path[0] == "generate" || setting.path[0] == "job";
        });
      });
    };
    std::vector<size_t> counts;  // of choices to look at, by axis
    for (const SweepAxis& axis : spec_.axes) {
      counts.push_back(is_of_jobs(axis) ? axis.choices.size() : 1);
    }
    counts[plan_axis] = 1;
    std::vector<size_t> choices(counts.size());
    std::optional<Misfit> first;
    while (true) {
      choices[plan_axis] = choice;
      ETUDE_ASSIGN_OR_RETURN(const SweepPoint point, planner.PointAt(spec_.PointOf(choices)));
      if (point.job.generate.empty()) return std::optional<Misfit>();
      ETUDE_RETURN_IF_ERROR(CheckGenerate(point));
      ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
      const Fits fits = CheckGenerateWords(call.words, console_.context());
      if (fits || fits.error().code == ErrorCode::kIo) return std::optional<Misfit>();
      if (!first) first = fits.error();
      choices[plan_axis] = 0;
      size_t axis = 0;
      while (axis < counts.size() && ++choices[axis] == counts[axis]) choices[axis++] = 0;
      if (axis == counts.size()) return first;
    }
  }

  Status PlanPoint(size_t index, std::map<std::string, size_t>& known) {
    ETUDE_ASSIGN_OR_RETURN(const SweepPoint point, planner_->PointAt(index));
    ETUDE_RETURN_IF_ERROR(CheckGenerate(point));
    ETUDE_ASSIGN_OR_RETURN(const SweepMachine made, MachineOf(point));
    const int64_t npus = made.machine.npus();
    SweepRow row{.point = index,
                 .labels = point.labels,
                 .npus = npus,
                 .bandwidth = LinkBandwidthOf(made.machine),
                 .cost = {},
                 .capacity = point.capacity,
                 .outcome = {}};
    if (spec_.prices) {
      const Result<double> cost = CostOf(made.machine, *spec_.prices);
      if (!cost) return BadInput(fmt::format("{}: {}", point.name, cost.error().message));
      row.cost = *cost;
    }
    const Result<std::string> job_hash = jobs_.HashOf(point, npus);
    if (!job_hash) return PlacedError(point, job_hash.error());
    std::string programs;
    for (const auto& [type, prefix] : made.collectives) {
      ETUDE_ASSIGN_OR_RETURN(const std::string hash,
                             HashOfPrefix(prefix, npus, console_.context().limits));
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

  // Which file of its job a point lacks, where the spec names it.
  static tl::unexpected<Error> PlacedError(const SweepPoint& point, const Error& error) {
    std::map<std::string, std::string> places;
    if (const auto call = GenerateCallOf(point)) places = call->places;
    places.insert(point.places.begin(), point.places.end());
    for (const auto& [path, place] : places) {
      if (IsThere(path) || IsThere(path + ".0.et")) continue;
      return MakeError(error.code, fmt::format("{}: {}", place, error.message));
    }
    return tl::unexpected<Error>(error);
  }

  void KeepShard(const Shard& shard) {
    if (shard.of == 1) return;
    std::vector<SweepTask> kept;
    std::vector<size_t> rows;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (static_cast<int64_t>(i) % shard.of != shard.number - 1) continue;
      rows.insert(rows.end(), tasks_[i].rows.begin(), tasks_[i].rows.end());
      kept.push_back(std::move(tasks_[i]));
    }
    std::ranges::sort(rows);
    std::vector<SweepRow> mine;
    for (const size_t row : rows) mine.push_back(std::move(results_.rows[row]));
    for (SweepTask& task : kept) {
      for (size_t& row : task.rows) {
        row = static_cast<size_t>(std::ranges::lower_bound(rows, row) - rows.begin());
      }
    }
    tasks_ = std::move(kept);
    results_.rows = std::move(mine);
  }

  std::string PointPath(const SweepTask& task) const {
    return fmt::format("{}/points/{}", folder_, SweepFileName(task.identity));
  }

  void SetOutcome(const SweepTask& task, const SweepOutcome& outcome) {
    for (const size_t row : task.rows) results_.rows[row].outcome = outcome;
  }

  void RunTasks(const std::vector<const SweepTask*>& open, int64_t threads) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<size_t> next = 0;
    size_t done = 0;
    const auto loop = [&] {
      std::shared_ptr<const SimJob> last;  // keeps the job for the next point
      while (!*stop_) {
        const size_t i = next++;
        if (i >= open.size()) return;
        // A thread must not throw.
        const Status status = Guarded([&] { return RunTask(*open[i], last); });
        const std::lock_guard lock(mutex_);
        if (!status) {
          if (status.error().code != ErrorCode::kInterrupted && !error_) error_ = status.error();
          if (error_) next = open.size();
          return;
        }
        ++done;
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        ShowProgress(done, open.size(), spent.count());
      }
    };
    RunOnThreads(threads, open.size(), loop);
  }

  // What is left takes what the others have taken on average.
  void ShowProgress(size_t done, size_t total, double seconds) const {
    const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
    const Nanos rest{static_cast<int64_t>(left) * 1'000'000'000};
    console_.context().Progress(fmt::format("points simulated, about {} left", FormatTime(rest)),
                                done, total);
  }

  Status RunTask(const SweepTask& task, std::shared_ptr<const SimJob>& last) {
    RunContext context = console_.context();
    context.progress = nullptr;
    context.stop = stop_;
    context.warn = [&](std::string_view text) {
      const std::lock_guard lock(mutex_);
      // A job may be read again for a later point.
      if (said_.emplace(text).second) console_.context().Warn(text);
    };
    Result<SweepOutcome> outcome = OutcomeOf(task, last, context);
    if (!outcome) {
      // An option of the specification may not go with this point's job.
      const ErrorCode code = outcome.error().code;
      if (code != ErrorCode::kBadInput && code != ErrorCode::kUsage) {
        return tl::unexpected<Error>(outcome.error());
      }
      outcome = SweepOutcome{.state = SweepOutcome::State::kRefused,
                             .why = outcome.error().message,
                             .times = {},
                             .notes = {}};
    }
    ETUDE_RETURN_IF_ERROR(ReplaceFile(PointPath(task), SweepFileText(task.identity, *outcome)));
    const std::lock_guard lock(mutex_);
    SetOutcome(task, *outcome);
    return {};
  }

  Result<SweepOutcome> OutcomeOf(const SweepTask& task, std::shared_ptr<const SimJob>& last,
                                 const RunContext& context) {
    const auto plan = [&] {
      const std::lock_guard lock(mutex_);
      return planner_->PointAt(results_.rows[task.rows.front()].point);
    };
    ETUDE_ASSIGN_OR_RETURN(const SweepPoint point, plan());
    ETUDE_ASSIGN_OR_RETURN(SweepMachine made, MachineOf(point));
    const int64_t npus = made.machine.npus();
    for (const auto& [type, prefix] : made.collectives) {
      ETUDE_ASSIGN_OR_RETURN(SimWorkload programs,
                             ReadSimFiles(prefix, npus, {.strict = console_.strict()}, context));
      made.machine.system.programs[type] = std::move(programs.ranks);
    }
    ETUDE_ASSIGN_OR_RETURN(last, jobs_.Read(point, task.job_hash, npus, context));
    const SimWorkload& workload = last->workload;
    ETUDE_ASSIGN_OR_RETURN(
        const SimResult result,
        etude::Simulate(made.machine, workload,
                        {.name = NamesOfRanks(last->prefix), .context = &context}));
    if (result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
    SweepOutcome outcome;
    if (last->plan && last->plan->ranks == npus) outcome.plan = last->plan;
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
    }
    return outcome;
  }

  const std::string path_;
  const std::string folder_;
  const Console& console_;
  SweepSpec spec_;
  std::optional<SweepPlanner> planner_;  // of spec_
  SweepJobs jobs_;
  std::vector<SweepTask> tasks_;
  SweepResults results_;
  std::mutex mutex_;  // of planner_, results_, error_, said_ and the console while tasks run
  std::optional<Error> error_;
  std::set<std::string> said_;               // warnings
  const std::atomic<bool>* stop_ = nullptr;  // while tasks run
};

class SweepCommand : public Command {
 public:
  std::string_view name() const override { return "sweep"; }
  std::string_view summary() const override {
    return "simulate every combination of jobs, plans and machines that a file lists, and rank "
           "them";
  }

  void Declare(Options& options) override {
    options.Positional("spec", &spec_, "a sweep in TOML");
    options.Output("-o,--output", &output_, "DIR", "folder for results; created if missing", {});
    options.Flag("--dry-run", &dry_run_, "list the points, simulate none");
    options.Value("--shard", &shard_, "I/N",
                  "simulate part I of N only; a last call without --shard prints the whole");
    options.Jobs(&jobs_, "points");
    options.Value("--top", &top_, "N", "points to print as text; 0 for all", {.least = 0});
    std::vector<std::string> orders = {"auto"};
    for (const SweepOrder order : kSweepOrders) orders.emplace_back(Name(order));
    options.Choice("--by", &by_, std::move(orders),
                   "rank points by this figure; auto: throughput where all points have it, else "
                   "step time");
    options.Output("--report", &report_, "FILE", "also write a page with charts (HTML)", {".html"});
    options.Flag("--json", &json_, "print JSON");
    options.Flag("--csv", &csv_, "print all points as CSV");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckUsage());
    ETUDE_ASSIGN_OR_RETURN(const Shard shard, ParseShard(shard_.value_or("1/1")));
    Sweep sweep(spec_, output_, console);
    ETUDE_RETURN_IF_ERROR(sweep.Plan(shard));
    for (const SweepOrder order : kSweepOrders) {
      if (by_ != Name(order)) continue;
      if (order == SweepOrder::kCost && !sweep.has_prices()) {
        return BadInput(fmt::format("{}: --by cost requires [prices]", spec_));
      }
      sweep.RankBy(order);
    }
    if (!dry_run_) {
      for (const std::string& output : {report_, Written("sweep.json"), Written("sweep.csv")}) {
        ETUDE_RETURN_IF_ERROR(sweep.CheckIsNoInput(output));
      }
    }
    if (!output_.empty()) ETUDE_RETURN_IF_ERROR(sweep.TakeKept());
    if (!dry_run_) {
      ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
      ETUDE_ASSIGN_OR_RETURN(const std::string said, sweep.Simulate(jobs_, stop->flag()));
      console.Say(said);
    }
    const SweepResults& results = sweep.Finish();
    if (!dry_run_) ETUDE_RETURN_IF_ERROR(WriteResults(results));
    if (json_) {
      console.Print(JsonText(SweepJson(results)));
    } else if (csv_) {
      console.PrintData(ToCsv(SweepPointTable(results)));
    } else {
      console.Print(SweepText(results, static_cast<size_t>(top_)));
    }
    const bool all_done = SweepFailureTable(results).rows.empty();
    return all_done ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  Status CheckUsage() const {
    const auto wrong = [](std::string_view message) {
      return MakeError(ErrorCode::kUsage, fmt::format("sweep: {}", message));
    };
    if (output_.empty() && !dry_run_) return wrong("missing -o DIR");
    if (output_ == "-") return wrong("-o -: expected a folder");
    if (json_ && csv_) return wrong("use either --json or --csv");
    if (report_ == "-" || (dry_run_ && !report_.empty())) {
      return wrong("--report requires a file, and cannot be combined with --dry-run");
    }
    return {};
  }

  Status WriteResults(const SweepResults& results) const {
    if (results.rows.size() == results.points) {
      ETUDE_RETURN_IF_ERROR(ReplaceFile(Written("sweep.json"), JsonText(SweepJson(results))));
      ETUDE_RETURN_IF_ERROR(ReplaceFile(Written("sweep.csv"), ToCsv(SweepPointTable(results))));
    }
    if (report_.empty()) return {};
    return WriteFile(report_, ToHtml(SweepPage(results)));
  }

  std::string Written(std::string_view name) const { return fmt::format("{}/{}", output_, name); }

  std::string spec_;
  std::string output_;
  std::optional<std::string> shard_;
  std::string report_;
  int64_t jobs_ = 0;
  int64_t top_ = 20;
  std::string by_ = "auto";
  bool dry_run_ = false;
  bool json_ = false;
  bool csv_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSweepCommand() { return std::make_unique<SweepCommand>(); }

}  // namespace etude

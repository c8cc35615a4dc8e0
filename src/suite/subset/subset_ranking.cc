#include "src/suite/subset/subset_ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/random_stream.h"
#include "src/base/statistics/kendall_tau.h"
#include "src/base/statistics/percentile_interval.h"
#include "src/suite/results/olympic_mean.h"

namespace etude::suite {
namespace {

constexpr size_t kMostSubsets = 1000;
constexpr size_t kDraws = 2000;

// Times of one task on one system, in seconds: a list per run, whose median is the run's time.
struct MeasuredTimes {
  std::vector<std::vector<double>> runs;
  size_t missed = 0;  // runs that missed the target
};

// times[system][task].
using SystemTimes = std::vector<std::vector<MeasuredTimes>>;
// Logarithms of times by system and task.
using LogTimes = std::vector<std::vector<double>>;

double MeanTime(const MeasuredTimes& times) {
  RunFigures figures{.values = {}, .missed = times.missed};
  for (const auto& run : times.runs) figures.values.push_back(Median(run));
  return OlympicMeanOf(std::move(figures))->value;
}

MeasuredTimes DrawTimes(const MeasuredTimes& times, RandomStream& random) {
  MeasuredTimes drawn{.runs = {}, .missed = times.missed};
  for (size_t i = 0; i < times.runs.size(); ++i) {
    const auto& run = times.runs[random.Below(times.runs.size())];
    auto& own = drawn.runs.emplace_back();
    for (size_t j = 0; j < run.size(); ++j) own.push_back(run[random.Below(run.size())]);
  }
  return drawn;
}

LogTimes LogsOf(const SystemTimes& times, RandomStream* random) {
  LogTimes logs;
  for (const auto& system : times) {
    auto& own = logs.emplace_back();
    for (const MeasuredTimes& task : system) {
      own.push_back(std::log(MeanTime(random == nullptr ? task : DrawTimes(task, *random))));
    }
  }
  return logs;
}

using TaskNumbers = std::vector<size_t>;

// Returns for each system the mean log time of the tasks: the negative logarithm of its speed.
std::vector<double> MeansOf(const LogTimes& logs, const TaskNumbers& tasks) {
  std::vector<double> means;
  for (const auto& system : logs) {
    double sum = 0;
    for (const size_t task : tasks) sum += system[task];
    means.push_back(sum / static_cast<double>(tasks.size()));
  }
  return means;
}

// Returns all subsets of `size` of `count` tasks, or kMostSubsets random ones if there are more.
std::vector<TaskNumbers> SubsetsOf(size_t count, size_t size, uint64_t seed, bool& every) {
  double number = 1;
  for (size_t i = 0; i < size; ++i) {
    number *= static_cast<double>(count - i) / static_cast<double>(i + 1);
  }
  every = number <= static_cast<double>(kMostSubsets) + 0.5;
  std::vector<TaskNumbers> found;
  if (!every) {
    RandomStream random(seed);
    TaskNumbers order(count);
    for (size_t i = 0; i < count; ++i) order[i] = i;
    while (found.size() < kMostSubsets) {
      Shuffle(std::span(order), random);
      TaskNumbers tasks(order.begin(), order.begin() + static_cast<ptrdiff_t>(size));
      std::ranges::sort(tasks);
      found.push_back(std::move(tasks));
    }
    return found;
  }
  std::vector<char> taken(count, 0);
  std::fill_n(taken.begin(), size, 1);
  do {
    TaskNumbers& tasks = found.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      if (taken[i] != 0) tasks.push_back(i);
    }
  } while (std::ranges::prev_permutation(taken).found);
  return found;
}

// Returns the number of steps to the target with the batch of the run; nullopt if unknown.
std::optional<double> StepsToTarget(const Subset& subset,
                                    const CharacterizedTasks& characterization,
                                    const RunRecord& run) {
  const auto task = std::ranges::find(subset.tasks, run.task,
                                      [](const Subset::Task& each) { return each.facts->id; });
  const auto factors = std::ranges::find(characterization.tasks, run.task, &TaskFactors::task);
  if (task == subset.tasks.end() || !task->repeatability.steps || run.batch <= 0 ||
      !factors->batch) {
    return std::nullopt;
  }
  return *task->repeatability.steps * static_cast<double>(*factors->batch) /
         static_cast<double>(run.batch);
}

bool IsStepsScore(const Score& score) { return score.runs.front().mode == "steps"; }

bool HasScore(const RankedSystem& system, const std::string& task, bool steps) {
  return std::ranges::any_of(system.scores, [&](const Score& score) {
    return score.task == task && IsStepsScore(score) == steps && (steps || score.reached);
  });
}

// Returns the systems with runs of the characterization's scale only, and of each task only those
// in quality mode if all systems reached its target in it, or only those in steps mode. Steps count
// as estimated times to the target.
std::vector<RankedSystem> Estimated(const Subset& subset,
                                    const CharacterizedTasks& characterization,
                                    std::vector<RankedSystem> systems, bool& other_batches) {
  for (RankedSystem& system : systems) {
    std::erase_if(system.scores, [&](const Score& score) {
      return score.runs.front().scale != characterization.scale;
    });
  }
  std::vector<RankedSystem> found;
  std::map<std::string, int64_t> batches;  // of the first system, by task
  for (const RankedSystem& system : systems) {
    RankedSystem& own = found.emplace_back();
    own.name = system.name;
    for (const Score& score : system.scores) {
      const bool quality = std::ranges::all_of(systems, [&](const RankedSystem& each) {
        return HasScore(each, score.task, /*steps=*/false);
      });
      if (IsStepsScore(score) == quality) continue;
      Score& copy = own.scores.emplace_back(score);
      if (quality) continue;
      copy.convergence.reset();
      const int64_t batch = score.runs.front().batch;
      other_batches |= batches.emplace(score.task, batch).first->second != batch;
      for (RunRecord& run : copy.runs) {
        const double factor = StepsToTarget(subset, characterization, run).value_or(1);
        for (double& seconds : run.step_seconds) seconds *= factor;
        run.mode = "quality";
        run.reached = !run.step_seconds.empty();
        run.seconds = Median(run.step_seconds);
        run.target.reset();
      }
    }
  }
  return found;
}

// Collects the times of the ranked tasks.
SystemTimes TimesOfTasks(const std::vector<RankedSystem>& systems,
                         const std::vector<std::string>& tasks) {
  SystemTimes times;
  for (const RankedSystem& system : systems) {
    auto& own = times.emplace_back();
    for (const std::string& task : tasks) {
      MeasuredTimes& measured = own.emplace_back();
      for (const Score& score : system.scores) {
        // A task is ranked by the first score of the first system and its counterpart.
        if (score.task != task || !measured.runs.empty()) continue;
        for (const RunRecord& run : score.runs) {
          if (!run.reached) {
            ++measured.missed;
            continue;
          }
          measured.runs.push_back(run.step_seconds.empty() ? std::vector{run.seconds}
                                                           : run.step_seconds);
        }
      }
    }
  }
  return times;
}

struct Tested {
  std::string name;
  TaskNumbers tasks;
};

class Agreement {
 public:
  Agreement(const SystemTimes& times, std::vector<TaskNumbers> subsets)
      : logs_(LogsOf(times, nullptr)), times_(times), subsets_(std::move(subsets)) {
    for (size_t i = 0; i < times.front().size(); ++i) all_.push_back(i);
  }

  const LogTimes& logs() const { return logs_; }

  std::optional<double> Tau(const TaskNumbers& tasks) const {
    return KendallTau(MeansOf(logs_, all_), MeansOf(logs_, tasks));
  }

  // Returns the mean tau of the subsets; nullopt if all systems are equally fast.
  std::optional<double> MeanTau() const { return MeanTau(logs_, MeansOf(logs_, all_)); }

  // Returns intervals of the tau of each set of tasks, and at the end of the mean of the subsets.
  std::vector<FigureInterval> Intervals(const std::vector<TaskNumbers>& sets, uint64_t seed) const {
    RandomStream random(seed);
    std::vector<std::vector<double>> drawn(sets.size() + 1);
    for (size_t i = 0; i < kDraws; ++i) {
      const LogTimes measured = LogsOf(times_, &random);
      LogTimes logs;
      for (size_t j = 0; j < measured.size(); ++j) {
        logs.push_back(measured[random.Below(measured.size())]);
      }
      const std::vector<double> by_all = MeansOf(logs, all_);
      for (size_t j = 0; j < sets.size(); ++j) {
        if (const auto tau = KendallTau(by_all, MeansOf(logs, sets[j]))) drawn[j].push_back(*tau);
      }
      if (const auto tau = MeanTau(logs, by_all)) drawn.back().push_back(*tau);
    }
    std::vector<FigureInterval> intervals;
    for (auto& figures : drawn) {
      intervals.push_back(figures.empty() ? FigureInterval{-1, 1}
                                          : PercentileInterval(std::move(figures)));
    }
    return intervals;
  }

 private:
  std::optional<double> MeanTau(const LogTimes& logs, const std::vector<double>& by_all) const {
    double sum = 0;
    size_t count = 0;
    for (const TaskNumbers& tasks : subsets_) {
      const auto tau = KendallTau(by_all, MeansOf(logs, tasks));
      if (!tau) continue;
      sum += *tau;
      ++count;
    }
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }

  LogTimes logs_;
  const SystemTimes& times_;
  std::vector<TaskNumbers> subsets_;
  TaskNumbers all_;
};

std::optional<TaskNumbers> NumbersOf(const std::vector<const TaskFacts*>& tasks,
                                     const std::vector<std::string>& ranked, std::string& why) {
  TaskNumbers numbers;
  std::vector<std::string_view> absent;
  for (const TaskFacts* task : tasks) {
    const auto found = std::ranges::find(ranked, task->id);
    if (found == ranked.end()) {
      absent.push_back(task->id);
    } else {
      numbers.push_back(static_cast<size_t>(found - ranked.begin()));
    }
  }
  if (absent.empty() && !numbers.empty()) return numbers;
  why =
      tasks.empty() ? "no task is ranked" : fmt::format("not ranked: {}", fmt::join(absent, ", "));
  return std::nullopt;
}

void AddCost(SubsetRanking::Row& row) {
  row.recalled_hours = RecalledHours(row.tasks);
  if (row.recalled_hours) row.saved = 1 - *row.recalled_hours / RecalledHoursOfSuite();
}

}  // namespace

Result<SubsetRanking> TestSubset(const Subset& subset, const CharacterizedTasks& characterization,
                                 const std::vector<RankedSystem>& systems, uint64_t seed) {
  if (systems.size() < 2) {
    return MakeError(ErrorCode::kUsage, "--systems: found one system, expected at least two");
  }
  SubsetRanking found;
  bool other_batches = false;
  const std::vector<RankedSystem> estimated =
      Estimated(subset, characterization, systems, other_batches);
  ETUDE_ASSIGN_OR_RETURN(found.by_all, RankSystems(estimated, seed));
  const std::vector<std::string>& ranked = found.by_all.tasks;
  if (ranked.empty()) {
    return BadInput("found no task whose target all systems reached, expected at least one");
  }
  std::vector<std::string_view> left_out;
  for (const Subset::Task& task : subset.tasks) {
    if (std::ranges::find(ranked, task.facts->id) == ranked.end()) {
      left_out.push_back(task.facts->id);
    }
  }
  if (!left_out.empty()) {
    found.notes.push_back(
        fmt::format("not ranked, because a system did not run them, missed their targets or "
                    "converged too fast: {}",
                    fmt::join(left_out, ", ")));
  }
  if (other_batches) {
    found.notes.push_back(
        "systems have different batches: steps count as if all batches needed the same epochs");
  }

  const SystemTimes times = TimesOfTasks(estimated, ranked);
  found.size = subset.picked().size();
  std::vector<TaskNumbers> subsets;
  if (found.size <= ranked.size()) {
    subsets = SubsetsOf(ranked.size(), found.size, seed, found.every);
  }
  found.subsets = subsets.size();
  const Agreement agreement(times, subsets);

  const auto add = [&](std::string name, std::vector<const TaskFacts*> tasks) {
    SubsetRanking::Row& row = found.rows.emplace_back();
    row.name = std::move(name);
    row.tasks = std::move(tasks);
    AddCost(row);
  };
  add("chosen here", subset.picked());
  for (const auto purpose :
       {SubsetOptions::Purpose::kRanking, SubsetOptions::Purpose::kCharacterization}) {
    add(fmt::format("AIBench, {} ({})", Name(purpose), SourceOfSubset(purpose)),
        PublishedSubset(purpose));
  }
  // Those that are ranked.
  std::vector<const TaskFacts*> mlperf = MlPerfLikeTasks();
  const size_t mlperf_count = mlperf.size();
  std::erase_if(mlperf, [&](const TaskFacts* task) {
    return std::ranges::find(ranked, task->id) == ranked.end();
  });
  add(mlperf.size() == mlperf_count
          ? "MLPerf-like"
          : fmt::format("MLPerf-like ({} of {} tasks)", mlperf.size(), mlperf_count),
      mlperf);
  if (!subsets.empty()) {
    // Of equally good subsets, the cheapest; unknown costs are the highest.
    const TaskNumbers* best = nullptr;
    std::pair<double, double> best_key;
    for (const TaskNumbers& tasks : subsets) {
      const auto tau = agreement.Tau(tasks);
      if (!tau) continue;
      std::vector<const TaskFacts*> facts;
      for (const size_t task : tasks) facts.push_back(FindTask(ranked[task]));
      const std::pair key(-*tau, RecalledHours(facts).value_or(1e300));
      if (best != nullptr && key >= best_key) continue;
      best = &tasks;
      best_key = key;
    }
    std::vector<const TaskFacts*> facts;
    for (size_t i = 0; best != nullptr && i < best->size(); ++i) {
      facts.push_back(FindTask(ranked[(*best)[i]]));
    }
    if (!facts.empty()) {
      add(fmt::format("best of the {} subsets of {}", found.subsets, found.size), facts);
    }
  }

  std::vector<TaskNumbers> sets;
  std::vector<size_t> rows;  // of the sets
  for (size_t i = 0; i < found.rows.size(); ++i) {
    const auto numbers = NumbersOf(found.rows[i].tasks, ranked, found.rows[i].why);
    if (!numbers) continue;
    sets.push_back(*numbers);
    rows.push_back(i);
  }
  const std::vector<FigureInterval> intervals = agreement.Intervals(sets, seed);
  for (size_t i = 0; i < sets.size(); ++i) {
    SubsetRanking::Row& row = found.rows[rows[i]];
    const auto tau = agreement.Tau(sets[i]);
    if (!tau) {
      row.why = "all systems are equally fast";
      continue;
    }
    row.tau = Estimate{*tau, intervals[i].low, intervals[i].high};
    if (rows[i] != 0) continue;
    const std::vector<double> means = MeansOf(agreement.logs(), sets[i]);
    for (const double mean : means) found.speeds.push_back(std::exp(means.front() - mean));
  }
  if (const auto mean = agreement.MeanTau()) {
    found.rows.push_back(
        {.name = fmt::format("mean of {} {} subsets of {}", found.every ? "all" : "random",
                             found.subsets, found.size),
         .tau = Estimate{*mean, intervals.back().low, intervals.back().high}});
  }
  return found;
}

}  // namespace etude::suite

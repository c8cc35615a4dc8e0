#include "src/suite/results/ranking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/suite/results/olympic_mean.h"

namespace etude::suite {
namespace {

constexpr size_t kResamples = 10'000;
constexpr double kTail = 0.025;
constexpr double kNoisy =
    0.1;  // spread of equal work above which a machine is too noisy for a ranking
constexpr size_t kFewRuns = 3;  // minimum of runs for an interval

// Returns the time of a run: to quality, or of a step.
double TimeOf(const RunRecord& run) {
  return run.mode == "steps" ? Median(run.step_seconds) : run.seconds;
}

bool IsSameKind(const Score& a, const Score& b) {
  return a.task == b.task && a.runs.front().scale == b.runs.front().scale &&
         a.runs.front().mode == b.runs.front().mode;
}

// A setting that a task's runs must, or should, have in common.
struct ComparedSetting {
  const char* name;
  std::string (*of_run)(const RunRecord& run);
  bool (*must_agree)(const RunRecord& run);  // otherwise times measure different work
};

bool Always(const RunRecord& /*run*/) { return true; }
bool Never(const RunRecord& /*run*/) { return false; }
bool TimesSteps(const RunRecord& run) { return run.mode == "steps"; }
bool TimesQuality(const RunRecord& run) { return run.mode != "steps"; }

constexpr std::array kCompared = {
    ComparedSetting{"scale", [](const RunRecord& run) { return run.scale; }, Always},
    ComparedSetting{"mode", [](const RunRecord& run) { return run.mode; }, Always},
    ComparedSetting{"target",
                    [](const RunRecord& run) {
                      if (run.mode == "steps") return std::string();
                      return run.target ? fmt::format("{}", *run.target) : "none";
                    },
                    TimesQuality},
    ComparedSetting{"batch", [](const RunRecord& run) { return fmt::format("{}", run.batch); },
                    TimesSteps},
    ComparedSetting{"device", [](const RunRecord& run) { return run.device; }, Never},
    ComparedSetting{"precision", [](const RunRecord& run) { return run.precision; }, Never},
    ComparedSetting{"ranks", [](const RunRecord& run) { return fmt::format("{}", run.ranks); },
                    Never},
    ComparedSetting{"threads", [](const RunRecord& run) { return fmt::format("{}", run.threads); },
                    Never},
    ComparedSetting{"optimizer", [](const RunRecord& run) { return run.optimizer; }, Never},
};
// Other user settings. Flags are "yes".
constexpr std::array kComparedOptions = {
    "density",        "deterministic", "evaluate-every",      "frozen",
    "loss-scale",     "most-steps",    "shuffled-labels",     "sparse",
    "sparse-kernels", "sparse-shares", "sparse-update-every", "to-the-end"};

bool MayBeRankedWith(const Score& a, const Score& b) {
  const RunRecord& run = a.runs.front();
  return std::ranges::all_of(kCompared, [&](const ComparedSetting& setting) {
    return !setting.must_agree(run) || setting.of_run(run) == setting.of_run(b.runs.front());
  });
}

const std::string& DataSetOf(const Score& score) { return score.runs.front().data_set; }

NamedTexts SettingsOfScore(const Score& score) {
  return score.runs.front().settings.value_or(NamedTexts());
}

// Finds a score of `system` to compare with `score`: preferably on the same data set, then rankable
// with it, then with the same settings.
const Score* FindCounterpart(const RankedSystem& system, const Score& score) {
  const Score* found = nullptr;
  int likeness_of_found = -1;
  for (const Score& other : system.scores) {
    if (!IsSameKind(score, other)) continue;
    const bool same_data = DataSetOf(other) == DataSetOf(score);
    const bool same_settings = SettingsOfScore(other) == SettingsOfScore(score);
    const int likeness =
        (same_data ? 4 : 0) + (MayBeRankedWith(score, other) ? 2 : 0) + (same_settings ? 1 : 0);
    if (likeness <= likeness_of_found) continue;
    found = &other;
    likeness_of_found = likeness;
  }
  return found;
}

// Checks data sets: kBadInput if two systems used different ones; a note if one is unknown.
Status CheckDataSets(const std::vector<const Score*>& scores,
                     const std::vector<RankedSystem>& systems, std::vector<std::string>& notes) {
  size_t known = 0;  // a system with a known data set
  while (known < scores.size() && DataSetOf(*scores[known]).empty()) ++known;
  if (known == scores.size()) return {};
  const std::string& data_set = DataSetOf(*scores[known]);
  for (size_t i = 0; i < scores.size(); ++i) {
    const std::string& own = DataSetOf(*scores[i]);
    if (own.empty()) {
      notes.push_back(fmt::format("{}: the data set of {} is unknown; treated as {}",
                                  scores[i]->task, systems[i].name, data_set));
    } else if (own != data_set) {
      return BadInput(fmt::format("{}: {} has runs on {}, {} on {}, expected one data set",
                                  scores[i]->task, systems[known].name, data_set, systems[i].name,
                                  own));
    }
  }
  return {};
}

// Checks settings: kBadInput for different work; a note for each other difference.
Status CheckSettings(const std::vector<const Score*>& scores,
                     const std::vector<RankedSystem>& systems, std::vector<std::string>& notes) {
  const RunRecord& first = scores.front()->runs.front();
  const auto note = [&](size_t i, std::string_view name, std::string_view mine,
                        std::string_view other) {
    notes.push_back(fmt::format("{}: {} {} on {}, {} on {}", first.task, name, mine,
                                systems.front().name, other, systems[i].name));
  };
  for (size_t i = 1; i < scores.size(); ++i) {
    const RunRecord& run = scores[i]->runs.front();
    for (const ComparedSetting& setting : kCompared) {
      const std::string mine = setting.of_run(first);
      const std::string other = setting.of_run(run);
      if (mine == other) continue;
      if (setting.must_agree(first)) {
        return BadInput(fmt::format("{}: {} has runs with {} {}, {} with {}, expected one {}",
                                    first.task, systems.front().name, setting.name, mine,
                                    systems[i].name, other, setting.name));
      }
      note(i, setting.name, mine, other);
    }
    const auto said = [](const RunRecord& of, const char* option) -> std::string {
      if (!of.settings) return "unknown";
      const auto found = of.settings->find(option);
      return found == of.settings->end() ? "not given" : found->second;
    };
    for (const char* option : kComparedOptions) {
      const std::string mine = said(first, option);
      const std::string other = said(run, option);
      if (mine != other && first.settings && run.settings) note(i, option, mine, other);
    }
  }
  return {};
}

// Returns the message that a system ran the task only at another scale or in another mode; ""
// otherwise.
std::string OtherKindText(const RankedSystem& first, const Score& score,
                          const RankedSystem& system) {
  const auto other = std::ranges::find(system.scores, score.task, &Score::task);
  if (other == system.scores.end()) return "";
  const RunRecord& mine = score.runs.front();
  const RunRecord& run = other->runs.front();
  const bool scale = mine.scale != run.scale;
  return fmt::format("{}: {} has runs with {} {}, {} with {}", score.task, first.name,
                     scale ? "scale" : "mode", scale ? mine.scale : mine.mode, system.name,
                     scale ? run.scale : run.mode);
}

// Returns the times of a task's runs on one system.
RunFigures TimesOf(const Score& score) {
  RunFigures times;
  for (const RunRecord& run : score.runs) {
    if (run.mode == "steps" || run.reached) {
      times.values.push_back(TimeOf(run));
    } else {
      ++times.missed;
    }
  }
  return times;
}

std::optional<double> SecondsOf(const RunFigures& times) {
  const std::optional<OlympicMean> mean = OlympicMeanOf(times);
  return mean ? std::optional(mean->value) : std::nullopt;
}

// Draws a bootstrap sample. Missed runs are kept, because the rate of misses is not estimated.
RunFigures Resampled(const RunFigures& times, RandomStream& random) {
  RunFigures drawn{.values = {}, .missed = times.missed};
  for (size_t i = 0; i < times.values.size(); ++i) {
    drawn.values.push_back(times.values[random.Below(times.values.size())]);
  }
  return drawn;
}

Estimate EstimateOf(double value, std::vector<double> drawn) {
  std::ranges::sort(drawn);
  const auto at = [&](double share) {
    return drawn[static_cast<size_t>(share * static_cast<double>(drawn.size() - 1))];
  };
  return {.value = value, .low = at(kTail), .high = at(1 - kTail)};
}

// Returns the rank of each figure, descending; ties share the better rank.
std::vector<int64_t> RanksOf(const std::vector<double>& speeds) {
  std::vector<int64_t> ranks;
  for (const double speed : speeds) {
    ranks.push_back(1 + std::ranges::count_if(speeds, [&](double other) { return other > speed; }));
  }
  return ranks;
}

// times[system][task], all with a mean.
using Times = std::vector<std::vector<RunFigures>>;

// Returns each system's geometric mean over tasks of its speed relative to the first.
std::vector<double> Speeds(const Times& times) {
  std::vector<double> speeds;
  for (const auto& own : times) {
    double sum = 0;
    for (size_t task = 0; task < own.size(); ++task) {
      sum += std::log(*SecondsOf(times.front()[task]) / *SecondsOf(own[task]));
    }
    speeds.push_back(std::exp(sum / static_cast<double>(own.size())));
  }
  return speeds;
}

void RankThem(const Times& times, uint64_t seed, Ranking& ranking) {
  const std::vector<double> speeds = Speeds(times);
  std::vector<std::vector<double>> drawn_speeds(times.size());
  std::vector<std::vector<double>> drawn_ranks(times.size());
  RandomStream random(seed);
  for (size_t i = 0; i < kResamples; ++i) {
    Times drawn;
    for (const auto& own : times) {
      auto& of_system = drawn.emplace_back();
      for (const auto& of_task : own) of_system.push_back(Resampled(of_task, random));
    }
    const std::vector<double> found = Speeds(drawn);
    const std::vector<int64_t> ranks = RanksOf(found);
    for (size_t system = 0; system < times.size(); ++system) {
      drawn_speeds[system].push_back(found[system]);
      drawn_ranks[system].push_back(static_cast<double>(ranks[system]));
    }
  }
  const std::vector<int64_t> ranks = RanksOf(speeds);
  for (size_t system = 0; system < times.size(); ++system) {
    Ranking::SystemRow& row = ranking.systems[system];
    row.speed = EstimateOf(speeds[system], std::move(drawn_speeds[system]));
    row.rank = ranks[system];
    const Estimate place =
        EstimateOf(static_cast<double>(row.rank), std::move(drawn_ranks[system]));
    row.best_rank = std::llround(place.low);
    row.worst_rank = std::llround(place.high);
  }
}

// Returns the speed relative to the first system.
std::optional<Estimate> SpeedOf(const RunFigures& first, const RunFigures& own, uint64_t seed) {
  const std::optional<double> mean_of_first = SecondsOf(first);
  const std::optional<double> mean = SecondsOf(own);
  if (!mean_of_first || !mean) return std::nullopt;
  if (&first == &own) return Estimate{1, 1, 1};
  RandomStream random(seed);
  std::vector<double> drawn;
  for (size_t i = 0; i < kResamples; ++i) {
    const double drawn_first = *SecondsOf(Resampled(first, random));
    drawn.push_back(drawn_first / *SecondsOf(Resampled(own, random)));
  }
  return EstimateOf(*mean_of_first / *mean, std::move(drawn));
}

// Returns whether the target was reached by less work than on other machines, which is not
// comparable.
bool IsTooFast(const Score& score) {
  return score.convergence && score.convergence->verdict == Convergence::Verdict::kTooFast;
}

Cell SpeedText(const std::optional<Estimate>& speed) {
  if (!speed) return {};
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", speed->value, speed->low, speed->high);
}

}  // namespace

Result<Ranking> RankSystems(const std::vector<RankedSystem>& systems, uint64_t seed) {
  Ranking ranking;
  for (const RankedSystem& system : systems) {
    Ranking::SystemRow& row = ranking.systems.emplace_back();
    row.system = system.name;
    for (const Score& score : system.scores) {
      for (const RunRecord& run : score.runs) {
        if (run.noise) row.noise = std::max(row.noise.value_or(0), *run.noise);
      }
    }
    if (row.noise.value_or(0) > kNoisy) {
      ranking.notes.push_back(
          fmt::format("{}: times of a fixed computation varied by {:.0f} % when the runs began, so "
                      "other programs were running",
                      system.name, *row.noise * 100));
    }
  }
  Times times(systems.size());
  bool few = false;
  std::string other_kind;
  std::set<std::pair<std::string, std::string>> ranked;  // tasks with their scales
  for (const Score& score : systems.front().scores) {
    const std::pair kind(score.task, score.runs.front().scale);
    if (ranked.contains(kind)) {
      ranking.notes.push_back(
          score.task + ": found runs of several scales or modes; only one of them is ranked");
      continue;
    }
    std::vector<const Score*> counterparts;
    for (const RankedSystem& system : systems) {
      const Score* found = FindCounterpart(system, score);
      if (found == nullptr) {
        if (other_kind.empty()) other_kind = OtherKindText(systems.front(), score, system);
        break;
      }
      counterparts.push_back(found);
    }
    if (counterparts.size() != systems.size()) {
      ranking.notes.push_back(score.task + ": not run on all systems; left out");
      continue;
    }
    ranked.insert(kind);
    ETUDE_RETURN_IF_ERROR(CheckDataSets(counterparts, systems, ranking.notes));
    ETUDE_RETURN_IF_ERROR(CheckSettings(counterparts, systems, ranking.notes));
    std::vector<RunFigures> of_task;
    for (const Score* each : counterparts) of_task.push_back(TimesOf(*each));
    bool all = true;
    bool comparable = true;
    for (size_t system = 0; system < systems.size(); ++system) {
      const RunFigures& own = of_task[system];
      const std::optional<double> seconds = SecondsOf(own);
      all = all && seconds.has_value();
      const bool too_fast = IsTooFast(*counterparts[system]);
      if (too_fast) {
        comparable = false;
        ranking.notes.push_back(fmt::format("{}: {}: {}; excluded from the ranking",
                                            systems[system].name, score.task,
                                            ToText(*counterparts[system]->convergence)));
      }
      const bool beside_too_fast = too_fast || IsTooFast(*counterparts.front());
      few = few || own.values.size() + own.missed < kFewRuns;
      ranking.by_task.push_back(
          {.task = score.task,
           .system = systems[system].name,
           .seconds = seconds,
           .speed = beside_too_fast ? std::nullopt : SpeedOf(of_task.front(), own, seed)});
    }
    if (!all) {
      ranking.notes.push_back(score.task + ": target missed; excluded from the ranking");
      continue;
    }
    if (!comparable) continue;
    ranking.tasks.push_back(score.task);
    for (size_t system = 0; system < systems.size(); ++system) {
      times[system].push_back(of_task[system]);
    }
  }
  if (ranking.by_task.empty() && !other_kind.empty()) {
    return BadInput(other_kind + ", expected one scale and mode");
  }
  if (ranking.by_task.empty()) {
    return BadInput(
        "found no task that ran on all systems, expected one with the same scale and mode");
  }
  if (few) {
    ranking.notes.push_back(fmt::format(
        "fewer than {} runs of a task: its interval is meaningless; run more --seeds", kFewRuns));
  }
  if (!ranking.tasks.empty()) RankThem(times, seed, ranking);
  return ranking;
}

Table SystemTable(const Ranking& ranking) {
  Table table{.key = "systems",
              .title = "Systems",
              .columns = {{"rank", "rank", Unit::kCount},
                          {"ranks", "ranks within 95 %"},
                          {"system", "system"},
                          {"speed", "speed [95 %]"},
                          {"noise", "noise", Unit::kShare}},
              .rows = {}};
  std::vector<Ranking::SystemRow> rows = ranking.systems;
  std::ranges::stable_sort(rows, {}, &Ranking::SystemRow::rank);
  for (const Ranking::SystemRow& row : rows) {
    table.rows.push_back(
        {row.rank == 0 ? Cell() : Cell(row.rank),
         row.rank == 0 ? Cell() : Cell(fmt::format("{} to {}", row.best_rank, row.worst_rank)),
         row.system, SpeedText(row.speed), ToCell(row.noise)});
  }
  return table;
}

Table TaskTable(const Ranking& ranking) {
  Table table{.key = "tasks",
              .title = "Tasks",
              .columns = {{"task", "task"},
                          {"system", "system"},
                          {"time_ns", "time", Unit::kTime},
                          {"speed", "speed [95 %]"}},
              .rows = {}};
  for (const Ranking::TaskRow& row : ranking.by_task) {
    table.rows.push_back(
        {row.task, row.system,
         row.seconds ? Cell(static_cast<int64_t>(std::llround(*row.seconds * 1e9))) : Cell(),
         SpeedText(row.speed)});
  }
  return table;
}

}  // namespace etude::suite

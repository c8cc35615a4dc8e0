#include "src/suite/subset/subset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/statistics/hull_area.h"
#include "src/base/statistics/k_means.h"
#include "src/base/statistics/t_sne.h"
#include "src/base/statistics/z_scores.h"
#include "src/base/text/format_count.h"

namespace etude::suite {
namespace {

using Purpose = SubsetOptions::Purpose;

constexpr double kKeptVariance = 0.9;  // share of the variance in the kept components
constexpr size_t kLeastClusters = 3;   // members of the published subsets
constexpr double kUsualPerplexity = 5;

constexpr std::array<std::string_view, 3> kPublishedRanking = {
    "image-classification", "object-detection", "learning-to-rank"};
constexpr std::array<std::string_view, 3> kPublishedCharacterization = {
    "spatial-transformer", "image-to-text", "speech-recognition"};

std::optional<double> Log10(std::optional<double> value) {
  return value && *value > 0 ? std::optional(std::log10(*value)) : std::nullopt;
}
std::optional<double> AsDouble(std::optional<int64_t> value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}
std::optional<double> Ratio(std::optional<double> part, std::optional<double> whole) {
  return part && whole && *whole > 0 ? std::optional(*part / *whole) : std::nullopt;
}

// A factor with its value for each task; nullopt if it is unknown.
struct FactorColumn {
  Factor factor;
  std::vector<std::optional<double>> values;
};

struct MeasuredTask {
  const TaskFactors* factors = nullptr;
  const Repeatability* repeatability = nullptr;
};

FactorColumn ColumnOf(Factor factor, const std::vector<MeasuredTask>& tasks, const auto& value_of) {
  FactorColumn column{.factor = std::move(factor), .values = {}};
  for (const MeasuredTask& task : tasks) column.values.push_back(value_of(task));
  return column;
}

std::vector<FactorColumn> RankingColumns(const std::vector<MeasuredTask>& tasks) {
  return {
      ColumnOf({"log10_parameters", "log10 parameters"}, tasks,
               [](const MeasuredTask& task) { return Log10(AsDouble(task.factors->parameters)); }),
      ColumnOf({"log10_flop_per_sample", "log10 FLOP a sample"}, tasks,
               [](const MeasuredTask& task) {
                 return Log10(Ratio(task.factors->flop, AsDouble(task.factors->batch)));
               }),
      ColumnOf({"log10_epochs", "log10 epochs to the target"}, tasks,
               [](const MeasuredTask& task) { return Log10(task.repeatability->mean); }),
  };
}

std::vector<FactorColumn> CharacterizationColumns(const std::vector<MeasuredTask>& tasks) {
  std::set<std::string> categories;
  for (const MeasuredTask& task : tasks) {
    if (!task.factors->hot_spots) continue;
    for (const auto& [name, share] : *task.factors->hot_spots) categories.insert(name);
  }
  std::vector<FactorColumn> columns;
  for (const std::string& name : categories) {
    columns.push_back(ColumnOf({"share_of_" + name, "time in " + name}, tasks,
                               [&](const MeasuredTask& task) -> std::optional<double> {
                                 if (!task.factors->hot_spots) return std::nullopt;
                                 const auto found = task.factors->hot_spots->find(name);
                                 return found == task.factors->hot_spots->end() ? 0 : found->second;
                               }));
  }
  columns.push_back(
      ColumnOf({"log10_intensity", "log10 FLOP a byte"}, tasks, [](const MeasuredTask& task) {
        return Log10(Ratio(task.factors->flop, task.factors->bytes));
      }));
  columns.push_back(
      ColumnOf({"parallel_efficiency", "parallel efficiency"}, tasks,
               [](const MeasuredTask& task) { return task.factors->parallel_efficiency; }));
  columns.push_back(ColumnOf({"instructions_per_cycle", "instructions a cycle"}, tasks,
                             [](const MeasuredTask& task) {
                               return Ratio(task.factors->instructions, task.factors->cycles);
                             }));
  columns.push_back(ColumnOf({"cache_misses_per_instruction", "cache misses an instruction"}, tasks,
                             [](const MeasuredTask& task) {
                               return Ratio(task.factors->cache_misses, task.factors->instructions);
                             }));
  columns.push_back(ColumnOf({"branch_misses_per_instruction", "branch misses an instruction"},
                             tasks, [](const MeasuredTask& task) {
                               return Ratio(task.factors->branch_misses,
                                            task.factors->instructions);
                             }));
  return columns;
}

std::string IdsOf(const std::vector<Subset::Task>& tasks, const std::vector<size_t>& which) {
  std::vector<std::string_view> ids;
  for (const size_t task : which) ids.push_back(tasks[task].facts->id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

// For characterization: leaves out factors that are unknown for tasks which have others, so that
// all tasks can be placed by the rest.
std::vector<FactorColumn> WithoutUnknownFactors(std::vector<FactorColumn> columns, Subset& subset) {
  const auto is_known = [](const std::optional<double>& value) { return value.has_value(); };
  // Tasks without hot spots were not profiled: they fall out, and no factor because of them.
  std::vector<bool> profiled(subset.tasks.size(), true);
  for (const FactorColumn& column : columns) {
    if (!column.factor.key.starts_with("share_of_")) continue;
    for (size_t i = 0; i < profiled.size(); ++i) profiled[i] = column.values[i].has_value();
  }
  std::vector<std::string> for_all;
  std::erase_if(columns, [&](const FactorColumn& column) {
    std::vector<size_t> unknown;
    for (size_t i = 0; i < profiled.size(); ++i) {
      if (profiled[i] && !column.values[i]) unknown.push_back(i);
    }
    if (unknown.empty()) return false;
    if (std::ranges::none_of(column.values, is_known)) {
      for_all.push_back(column.factor.title);
    } else {
      subset.notes.push_back(fmt::format("{}: unknown for {}; left out for all tasks",
                                         column.factor.title, IdsOf(subset.tasks, unknown)));
    }
    return true;
  });
  if (!for_all.empty()) {
    subset.notes.push_back(
        fmt::format("unknown for all tasks, left out: {}", fmt::join(for_all, ", ")));
  }
  return columns;
}

// Fills the factors of all tasks that have all of them; the others get a reason.
void PlaceTasks(const std::vector<FactorColumn>& columns, Subset& subset) {
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    Subset::Task& task = subset.tasks[i];
    std::vector<std::string_view> unknown;
    for (const FactorColumn& column : columns) {
      if (!column.values[i]) unknown.push_back(column.factor.title);
    }
    if (!unknown.empty()) {
      task.why = unknown.size() > 3 && unknown.size() == columns.size()
                     ? "unknown factors"
                     : fmt::format("unknown: {}", fmt::join(unknown, ", "));
      continue;
    }
    for (const FactorColumn& column : columns) task.factors.push_back(*column.values[i]);
  }
  for (const FactorColumn& column : columns) subset.factors.push_back(column.factor);
}

// Removes factors that are the same for all placed tasks.
void DropConstantFactors(Subset& subset) {
  std::vector<std::string> dropped;
  for (size_t factor = 0; factor < subset.factors.size();) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Subset::Task& task : subset.tasks) {
      if (task.factors.empty()) continue;
      low = std::min(low, task.factors[factor]);
      high = std::max(high, task.factors[factor]);
    }
    // Ratios of powers may differ by rounding.
    if (high - low > 1e-12 * std::max(std::abs(low), std::abs(high))) {
      ++factor;
      continue;
    }
    const auto at = static_cast<ptrdiff_t>(factor);
    dropped.push_back(subset.factors[factor].title);
    subset.factors.erase(subset.factors.begin() + at);
    for (Subset::Task& task : subset.tasks) {
      if (!task.factors.empty()) task.factors.erase(task.factors.begin() + at);
    }
  }
  if (dropped.empty()) return;
  subset.notes.push_back(
      fmt::format("equal for all tasks, left out: {}", fmt::join(dropped, ", ")));
}

// Computes z-scores, principal components and the t-SNE map of the placed tasks.
void MapTasks(Subset& subset) {
  std::vector<Subset::Task*> placed;
  PointRows raw;
  for (Subset::Task& task : subset.tasks) {
    if (task.factors.empty()) continue;
    placed.push_back(&task);
    raw.push_back(task.factors);
  }
  const PointRows scores = ZScores(raw);
  subset.components = PrincipalComponentsOf(scores);
  subset.kept_components = std::min(subset.components.variances.size(),
                                    std::max<size_t>(2, subset.components.CountFor(kKeptVariance)));
  const auto others = static_cast<double>(placed.size()) - 1;
  subset.perplexity = std::clamp(others / 3, 1.5, kUsualPerplexity);
  const TsneMap map = Tsne(scores, {.perplexity = subset.perplexity, .seed = subset.options.seed});
  subset.divergence = map.divergence;
  for (size_t i = 0; i < placed.size(); ++i) {
    placed[i]->z_scores = scores[i];
    const auto& coordinates = subset.components.coordinates[i];
    placed[i]->pca.assign(coordinates.begin(),
                          coordinates.begin() + static_cast<ptrdiff_t>(subset.kept_components));
    placed[i]->t_sne = map.points[i];
  }
}

// Returns whether the task costs more than allowed, and gives the reason.
bool IsTooExpensive(const SubsetOptions& options, Subset::Task& task) {
  const std::optional<double> hours = task.facts->recalled_hours;
  if (!options.most_hours || !hours || *hours <= *options.most_hours) return false;
  task.why = fmt::format("more than {:.4g} recalled hours", *options.most_hours);
  return true;
}

std::string PercentText(double share) { return fmt::format("{:.3g} %", share * 100); }

// Applies the criteria of a ranking: an accepted metric and repeatability. If fewer than
// kLeastTasks tasks are as repeatable as wanted, takes the half with the least variation.
void FilterForRanking(Subset& subset) {
  const double limit = subset.options.most_variation;
  std::vector<Subset::Task*> accepted;
  for (Subset::Task& task : subset.tasks) {
    if (task.factors.empty()) continue;
    if (!task.facts->accepted_metric) {
      task.why = "no accepted metric";
    } else if (IsTooExpensive(subset.options, task)) {
      continue;
    } else if (!task.repeatability.variation) {
      task.why = "fewer than two runs reached the target";
    } else {
      accepted.push_back(&task);
    }
  }
  const auto shown = std::ranges::count_if(accepted, [](const Subset::Task* task) {
    return task->repeatability.verdict == Repeatability::Verdict::kShown;
  });
  const bool strict = static_cast<size_t>(shown) >= kLeastTasks;
  std::ranges::stable_sort(accepted, {}, [](const Subset::Task* task) {
    return task->repeatability.variation->coefficient;
  });
  const size_t half = std::max(kLeastTasks, (accepted.size() + 1) / 2);
  const size_t most = std::min(half, accepted.size());
  for (size_t i = 0; i < accepted.size(); ++i) {
    Subset::Task& task = *accepted[i];
    task.candidate =
        strict ? task.repeatability.verdict == Repeatability::Verdict::kShown : i < most;
    if (task.candidate) continue;
    const std::string own = PercentText(task.repeatability.variation->coefficient);
    if (!strict) {
      task.why = fmt::format("variation of {}: not in the more repeatable half", own);
    } else if (task.repeatability.verdict == Repeatability::Verdict::kShownAbove) {
      task.why = fmt::format("variation of {}: shown above {}", own, PercentText(limit));
    } else {
      task.why =
          fmt::format("variation of {}: not shown to be at most {}", own, PercentText(limit));
    }
  }
  if (strict || accepted.empty()) return;
  subset.notes.push_back(fmt::format(
      "repeatability: {} shown to vary by at most {}, expected at least {} tasks; the candidates "
      "are "
      "the {} tasks with the least variation (at most {})",
      shown == 0 ? "no task is" : fmt::format("{} {}", shown, shown == 1 ? "task is" : "tasks are"),
      PercentText(limit), kLeastTasks, most,
      PercentText(accepted[most - 1]->repeatability.variation->coefficient)));
}

// Returns the member that represents a cluster: of the half of its candidates nearest to the
// centre, the one with the lowest recalled cost. Unknown costs are the highest.
size_t Representative(const std::vector<Subset::Task>& tasks, const TaskClusters& clusters,
                      std::vector<size_t> members) {
  const auto distance = [&](size_t task) { return *clusters.distances[task]; };
  const auto hours = [&](size_t task) {
    return tasks[task].facts->recalled_hours.value_or(std::numeric_limits<double>::infinity());
  };
  std::ranges::stable_sort(members, {}, distance);
  const double middle = distance(members[(members.size() - 1) / 2]);
  std::erase_if(members, [&](size_t task) { return distance(task) > middle * (1 + 1e-9); });
  return *std::ranges::min_element(members, {}, hours);
}

// Clusters the candidates by their coordinates.
TaskClusters ClusterTasks(const Subset& subset, std::vector<double> Subset::Task::*coordinates) {
  std::vector<size_t> candidates;
  PointRows points;
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    if (!subset.tasks[i].candidate) continue;
    candidates.push_back(i);
    points.push_back(subset.tasks[i].*coordinates);
  }
  const KMeansOptions options{.seed = subset.options.seed};
  TaskClusters found;
  const size_t most = std::max(kLeastClusters, points.size() / 2);
  double best = -std::numeric_limits<double>::infinity();
  for (size_t count = 2; count < points.size() && count <= most; ++count) {
    const double mean = MeanSilhouette(points, KMeans(points, count, options).labels);
    found.silhouettes.emplace_back(count, mean);
    if (count < kLeastClusters || mean <= best + 1e-12) continue;
    best = mean;
    found.count = count;
  }
  if (subset.options.clusters) found.count = static_cast<size_t>(*subset.options.clusters);

  const Clusters clusters = KMeans(points, found.count, options);
  found.inertia = clusters.inertia;
  found.labels.resize(subset.tasks.size());
  found.distances.resize(subset.tasks.size());
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    const std::vector<double>& own = subset.tasks[i].*coordinates;
    if (own.empty()) continue;
    const auto at = std::ranges::find(candidates, i);
    size_t label = 0;
    if (at != candidates.end()) {
      label = clusters.labels[static_cast<size_t>(at - candidates.begin())];
    } else {
      for (size_t other = 1; other < clusters.centres.size(); ++other) {
        if (SquaredDistance(own, clusters.centres[other]) <
            SquaredDistance(own, clusters.centres[label])) {
          label = other;
        }
      }
    }
    found.labels[i] = label;
    found.distances[i] = std::sqrt(SquaredDistance(own, clusters.centres[label]));
  }
  for (size_t label = 0; label < found.count; ++label) {
    std::vector<size_t> members;
    for (const size_t task : candidates) {
      if (found.labels[task] == label) members.push_back(task);
    }
    // Equal tasks may leave a cluster empty.
    if (!members.empty()) found.picked.push_back(Representative(subset.tasks, found, members));
  }
  return found;
}

void ExplainChoice(Subset& subset) {
  const TaskClusters& clusters = subset.clusters();
  std::vector<std::string_view> representatives(clusters.count);
  for (const size_t task : clusters.picked) {
    representatives[*clusters.labels[task]] = subset.tasks[task].facts->id;
  }
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    Subset::Task& task = subset.tasks[i];
    if (!task.candidate) continue;
    const size_t label = *clusters.labels[i];
    task.picked = std::ranges::find(clusters.picked, i) != clusters.picked.end();
    size_t members = 0;
    bool nearest = true;
    for (size_t other = 0; other < subset.tasks.size(); ++other) {
      if (!subset.tasks[other].candidate || clusters.labels[other] != label) continue;
      ++members;
      nearest = nearest && *clusters.distances[i] <= *clusters.distances[other] * (1 + 1e-9);
    }
    if (!task.picked) {
      task.why = fmt::format("represented by {}", representatives[label]);
    } else if (members == 1) {
      task.why = "alone in its cluster";
    } else {
      task.why = fmt::format(
          "{} of a cluster of {}",
          nearest && members > 2 ? "nearest to the centre" : "cheapest near the centre", members);
    }
  }
}

// Returns the extent of each coordinate over the given points.
std::vector<std::pair<double, double>> ExtentsOf(const PointRows& points) {
  std::vector<std::pair<double, double>> extents;
  for (size_t i = 0; !points.empty() && i < points.front().size(); ++i) {
    const auto [low, high] = std::ranges::minmax(points, {}, [&](const auto& p) { return p[i]; });
    extents.emplace_back(low[i], high[i]);
  }
  return extents;
}

void MeasureCoverage(const Subset& subset, TaskSet& set) {
  PointRows factors;
  PointRows components;
  PointRows all_factors;
  PointRows all_components;
  for (const Subset::Task& task : subset.tasks) {
    if (task.factors.empty()) continue;
    all_factors.push_back(task.factors);
    all_components.push_back(task.pca);
    if (std::ranges::find(set.tasks, task.facts) == set.tasks.end()) continue;
    factors.push_back(task.factors);
    components.push_back(task.pca);
  }
  set.placed = factors.size();
  if (factors.empty()) return;
  const auto all = ExtentsOf(all_factors);
  const auto own = ExtentsOf(factors);
  for (size_t i = 0; i < own.size(); ++i) {
    set.ranges.push_back(
        {.low = own[i].first,
         .high = own[i].second,
         .share = (own[i].second - own[i].first) / (all[i].second - all[i].first)});
  }
  const auto box_of = [](const PointRows& points) {
    double box = 1;
    for (const auto& [low, high] : ExtentsOf(points)) box *= high - low;
    return box;
  };
  set.box = Ratio(box_of(components), box_of(all_components));
  if (subset.kept_components >= 2) set.area = Ratio(HullArea(components), HullArea(all_components));
}

TaskSet MakeSet(const Subset& subset, std::string name, std::string source,
                std::vector<const TaskFacts*> tasks) {
  TaskSet set{.name = std::move(name), .source = std::move(source), .tasks = std::move(tasks)};
  set.recalled_hours = RecalledHours(set.tasks);
  for (const TaskFacts* task : set.tasks) {
    if (!task->recalled_hours) set.no_hours.push_back(task);
  }
  if (set.recalled_hours) set.saved = 1 - *set.recalled_hours / RecalledHoursOfSuite();
  MeasureCoverage(subset, set);
  return set;
}

// Returns why tasks fell out, each reason once: "no accepted metric: image-generation, …; …".
std::string ReasonsText(const Subset& subset) {
  std::map<std::string_view, std::vector<size_t>> by_reason;
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    if (!subset.tasks[i].why.empty()) by_reason[subset.tasks[i].why].push_back(i);
  }
  std::vector<std::string> reasons;
  for (const auto& [why, tasks] : by_reason) {
    reasons.push_back(fmt::format("{}: {}", why, IdsOf(subset.tasks, tasks)));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

std::string_view Name(SubsetOptions::Purpose purpose) {
  switch (purpose) {
    case Purpose::kRanking: return "ranking";
    case Purpose::kCharacterization: return "characterization";
  }
  return "";
}

std::string_view Name(SubsetOptions::Space space) {
  switch (space) {
    case SubsetOptions::Space::kPca: return "pca";
    case SubsetOptions::Space::kTsne: return "t-sne";
  }
  return "";
}

std::vector<const TaskFacts*> Subset::picked() const {
  std::vector<const TaskFacts*> found;
  for (const Task& task : tasks) {
    if (task.picked) found.push_back(task.facts);
  }
  return found;
}

std::vector<const TaskFacts*> PublishedSubset(SubsetOptions::Purpose purpose) {
  std::vector<const TaskFacts*> tasks;
  for (const std::string_view id :
       purpose == Purpose::kRanking ? kPublishedRanking : kPublishedCharacterization) {
    tasks.push_back(FindTask(id));
  }
  return tasks;
}

std::string_view SourceOfSubset(SubsetOptions::Purpose purpose) {
  return Name(purpose == Purpose::kRanking ? Origin::kFound : Origin::kRecalled);
}

std::vector<const TaskFacts*> MlPerfLikeTasks() {
  std::vector<const TaskFacts*> tasks;
  for (const TaskFacts& task : Catalogue()) {
    if (!task.mlperf.empty()) tasks.push_back(&task);
  }
  return tasks;
}

std::optional<double> RecalledHours(std::span<const TaskFacts* const> tasks) {
  double sum = 0;
  for (const TaskFacts* task : tasks) {
    if (!task->recalled_hours) return std::nullopt;
    sum += *task->recalled_hours;
  }
  return sum;
}

double RecalledHoursOfSuite() {
  double sum = 0;
  for (const TaskFacts& task : Catalogue()) sum += task.recalled_hours.value_or(0);
  return sum;
}

Result<Subset> ChooseSubset(const CharacterizedTasks& characterization, std::span<const Score> kept,
                            std::span<const ConvergenceReference> references,
                            const SubsetOptions& options) {
  Subset subset{.options = options, .scale = characterization.scale};
  std::vector<MeasuredTask> measured;
  for (const TaskFacts& facts : Catalogue()) {
    const auto found = std::ranges::find(characterization.tasks, facts.id, &TaskFactors::task);
    if (found == characterization.tasks.end()) {
      subset.missing.push_back(&facts);
      continue;
    }
    subset.tasks.push_back({.facts = &facts,
                            .repeatability = RepeatabilityOf(*found, characterization.scale, kept,
                                                             references, options.most_variation)});
    measured.push_back({.factors = &*found});
  }
  for (size_t i = 0; i < measured.size(); ++i) {
    measured[i].repeatability = &subset.tasks[i].repeatability;
  }
  const bool ranks = options.purpose == Purpose::kRanking;
  PlaceTasks(ranks ? RankingColumns(measured)
                   : WithoutUnknownFactors(CharacterizationColumns(measured), subset),
             subset);
  const auto is_placed = [](const Subset::Task& task) { return !task.factors.empty(); };
  const auto placed = std::ranges::count_if(subset.tasks, is_placed);
  const auto too_few = [&](size_t count, std::string_view which) {
    const std::string reasons = ReasonsText(subset);
    return BadInput(fmt::format("{}: found {} {}, expected at least {}{}", characterization.path,
                                FormatCount(count, "task"), which, kLeastTasks,
                                reasons.empty() ? "" : fmt::format(" ({})", reasons)));
  };
  if (static_cast<size_t>(placed) < kLeastTasks) {
    return too_few(static_cast<size_t>(placed), "with all factors");
  }
  DropConstantFactors(subset);
  if (subset.factors.empty()) {
    return BadInput(fmt::format("{}: found the same factors for all tasks, expected different ones",
                                characterization.path));
  }
  MapTasks(subset);
  if (ranks) {
    FilterForRanking(subset);
  } else {
    for (Subset::Task& task : subset.tasks) {
      task.candidate = is_placed(task) && !IsTooExpensive(options, task);
    }
  }
  const auto candidates =
      static_cast<size_t>(std::ranges::count_if(subset.tasks, &Subset::Task::candidate));
  if (candidates < kLeastTasks) {
    return too_few(candidates, "to choose from");
  }
  if (options.clusters && static_cast<size_t>(*options.clusters) > candidates) {
    return BadInput(
        fmt::format("{}: found {} candidates, expected at least as many as the {} "
                    "clusters",
                    characterization.path, candidates, *options.clusters));
  }
  subset.by_pca = ClusterTasks(subset, &Subset::Task::pca);
  subset.by_t_sne = ClusterTasks(subset, &Subset::Task::t_sne);
  ExplainChoice(subset);

  std::vector<const TaskFacts*> all;
  for (const Subset::Task& task : subset.tasks) all.push_back(task.facts);
  subset.sets.push_back(MakeSet(subset, "all characterized", "", std::move(all)));
  subset.sets.push_back(MakeSet(subset, "MLPerf-like", "", MlPerfLikeTasks()));
  subset.sets.push_back(MakeSet(subset, "chosen here", "", subset.picked()));
  subset.sets.push_back(MakeSet(subset, fmt::format("AIBench, {}", Name(options.purpose)),
                                std::string(SourceOfSubset(options.purpose)),
                                PublishedSubset(options.purpose)));
  return subset;
}

}  // namespace etude::suite

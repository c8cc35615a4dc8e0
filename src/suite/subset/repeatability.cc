#include "src/suite/subset/repeatability.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "src/suite/results/catalogue.h"

namespace etude::suite {
namespace {

struct SeedRun {
  std::optional<double> epochs;  // nullopt: missed the target
  bool calibrated = false;
};
using SeedRuns = std::map<int64_t, SeedRun>;
// By steps between evaluations; nullopt: unknown.
using RunsByInterval = std::map<std::optional<int64_t>, SeedRuns>;

// Options that change what a run learns, or when it ends.
constexpr const char* kOtherWork[] = {"sparse", "shuffled-labels", "frozen", "to-the-end"};

bool IsRunOf(const TaskFactors& task, std::string_view scale, const RunRecord& run) {
  const auto agrees = [](const auto& wanted, const auto& found) {
    return !wanted || *wanted == found;
  };
  const NamedTexts settings = run.settings.value_or(NamedTexts());
  return run.task == task.task && run.scale == scale && run.mode == "quality" &&
         run.precision == Name(Precision::kFp32) && agrees(task.batch, run.batch) &&
         agrees(task.samples, run.samples) && agrees(task.parameters, run.parameters) &&
         (task.data_set.empty() || run.data_set.empty() || task.data_set == run.data_set) &&
         std::ranges::none_of(kOtherWork,
                              [&](const char* name) { return settings.contains(name); });
}

// Returns the references with the task's settings and any interval between evaluations; none if
// some settings are unknown.
std::vector<const ConvergenceReference*> ReferencesOf(
    const TaskFactors& task, std::string_view scale, std::optional<double> target,
    std::span<const ConvergenceReference> references) {
  std::vector<const ConvergenceReference*> found;
  if (!target || !task.batch || !task.samples || !task.parameters) return found;
  RunRecord run{.task = task.task,
                .scale = std::string(scale),
                .mode = "quality",
                .precision = std::string(Name(Precision::kFp32)),
                .batch = *task.batch,
                .samples = *task.samples,
                .parameters = *task.parameters,
                // Without its rate, an optimizer is not compared.
                .optimizer = task.optimizer.find(' ') != std::string::npos ? task.optimizer : "",
                .settings = NamedTexts(),
                .target = target};
  for (const ConvergenceReference& reference : references) {
    run.evaluate_every = reference.evaluate_every;
    if (!run.evaluate_every) continue;
    if (const auto* own = ReferenceFor(run, {&reference, 1})) found.push_back(own);
  }
  return found;
}

// Returns the runs that count. Requires at least one group.
const RunsByInterval::value_type& RunsThatCount(const RunsByInterval& groups) {
  return *std::ranges::max_element(groups, {}, [](const RunsByInterval::value_type& group) {
    const auto& [interval, runs] = group;
    const bool enough = interval && runs.size() >= kEnoughSeeds;
    constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
    return std::tuple(enough, enough ? 0 : runs.size(), -interval.value_or(kUnknown));
  });
}

// Returns the steps between evaluations from which the variation is partly rounding.
double MostRoundingOf(const Repeatability& found) {
  return kMostRounding * found.variation->coefficient * *found.steps;
}

}  // namespace

std::optional<int64_t> Repeatability::MostSteps() const {
  if (!variation || !steps) return std::nullopt;
  return std::max<int64_t>(1, static_cast<int64_t>(MostRoundingOf(*this)));
}

std::string_view Name(Repeatability::Verdict verdict) {
  switch (verdict) {
    case Repeatability::Verdict::kShown: return "shown";
    case Repeatability::Verdict::kNotShown: return "not_shown";
    case Repeatability::Verdict::kShownAbove: return "shown_above";
    case Repeatability::Verdict::kUnknown: return "unknown";
  }
  return "";
}

Repeatability RepeatabilityOf(const TaskFactors& task, std::string_view scale,
                              std::span<const Score> kept,
                              std::span<const ConvergenceReference> references, double limit) {
  Repeatability found;
  const TaskFacts* facts = FindTask(task.task);
  const auto wanted = facts->TargetOf(scale == Name(Scale::kPaper) ? Scale::kPaper : Scale::kSmoke);
  const std::optional<double> target = wanted ? std::optional(wanted->quality) : std::nullopt;

  RunsByInterval groups;
  for (const Score& score : kept) {
    for (const RunRecord& run : score.runs) {
      if (!run.target || !IsRunOf(task, scale, run)) continue;
      if (target && *run.target != *target) continue;
      groups[StepsBetweenEvaluations(run)][run.seed].epochs = EpochsTo(run, *run.target);
    }
  }
  for (const TaskFactors::Run& run : task.runs) {
    groups[run.evaluate_every].try_emplace(
        run.seed, SeedRun{.epochs = run.reached ? run.epochs : std::nullopt});
  }
  const auto calibrated = ReferencesOf(task, scale, target, references);
  for (const ConvergenceReference* reference : calibrated) {
    for (size_t i = 0; i < reference->epochs.size(); ++i) {
      // Without a seed it may be a run that is already there.
      if (!reference->seeds[i]) continue;
      groups[reference->evaluate_every].try_emplace(
          *reference->seeds[i], SeedRun{.epochs = reference->epochs[i], .calibrated = true});
    }
  }
  if (groups.empty()) return found;

  const std::optional<int64_t> interval = RunsThatCount(groups).first;
  found.evaluate_every = interval;
  for (const auto& [steps, own] : groups) {
    for (const auto& [seed, run] : own) {
      if (!run.epochs) {
        ++found.missed;
      } else if (steps == interval) {
        found.epochs.push_back(*run.epochs);
        found.calibrated += run.calibrated ? 1 : 0;
      } else {
        found.left_out += run.calibrated ? 0 : 1;
      }
    }
  }
  for (const ConvergenceReference* reference : calibrated) {
    if (reference->evaluate_every == interval)
      found.missed += static_cast<size_t>(reference->missed);
  }
  if (found.epochs.empty()) return found;
  found.mean = 0;
  for (const double epochs : found.epochs) {
    *found.mean += epochs / static_cast<double>(found.epochs.size());
  }
  double resolution = 0;  // epochs
  if (task.batch && task.samples) {
    const double steps_per_epoch =
        static_cast<double>(*task.samples) / static_cast<double>(*task.batch);
    found.steps = *found.mean * steps_per_epoch;
    resolution = static_cast<double>(found.evaluate_every.value_or(0)) / steps_per_epoch;
  }
  found.variation = etude::VariationOf(found.epochs, resolution);
  if (!found.variation) return found;
  if (found.steps && found.evaluate_every) {
    found.coarse = static_cast<double>(*found.evaluate_every) > MostRoundingOf(found);
  }
  using Verdict = Repeatability::Verdict;
  found.verdict = found.variation->low > limit                          ? Verdict::kShownAbove
                  : found.variation->high <= limit && found.missed == 0 ? Verdict::kShown
                                                                        : Verdict::kNotShown;
  return found;
}

}  // namespace etude::suite

#include "src/suite/subset/repeatability.h"

#include <algorithm>
#include <map>
#include <string>

#include "src/suite/results/catalogue.h"

namespace etude::suite {
namespace {

struct SeedRun {
  std::optional<double> epochs;  // nullopt: missed the target
  bool calibrated = false;
};
using SeedRuns = std::map<int64_t, SeedRun>;

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

// Returns the reference with the task's settings; nullptr if there is none, or if some settings are
// unknown. Without runs of the task (`evaluate_every` unknown), evaluations are the reference's.
const ConvergenceReference* ReferenceOf(const TaskFactors& task, std::string_view scale,
                                        std::optional<double> target,
                                        std::optional<int64_t> evaluate_every,
                                        std::span<const ConvergenceReference> references) {
  if (!target || !task.batch || !task.samples || !task.parameters) return nullptr;
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
    run.evaluate_every = evaluate_every ? evaluate_every : reference.evaluate_every;
    if (!run.evaluate_every) continue;
    if (const auto* found = ReferenceFor(run, {&reference, 1})) return found;
  }
  return nullptr;
}

}  // namespace

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

  SeedRuns runs;
  const auto saw_interval = [&](std::optional<int64_t> steps) {
    if (steps) found.evaluate_every = std::max(found.evaluate_every.value_or(0), *steps);
  };
  for (const Score& score : kept) {
    for (const RunRecord& run : score.runs) {
      if (!run.target || !IsRunOf(task, scale, run)) continue;
      if (target && *run.target != *target) continue;
      runs[run.seed].epochs = EpochsTo(run, *run.target);
      saw_interval(StepsBetweenEvaluations(run));
    }
  }
  for (const TaskFactors::Run& run : task.runs) {
    if (!runs.contains(run.seed)) runs[run.seed].epochs = run.reached ? run.epochs : std::nullopt;
    saw_interval(run.evaluate_every);
  }
  const ConvergenceReference* reference =
      ReferenceOf(task, scale, target, found.evaluate_every, references);
  if (reference != nullptr) {
    saw_interval(reference->evaluate_every);
    for (size_t i = 0; i < reference->epochs.size(); ++i) {
      // Without a seed it may be a run that is already there.
      if (!reference->seeds[i] || runs.contains(*reference->seeds[i])) continue;
      runs[*reference->seeds[i]] = {.epochs = reference->epochs[i], .calibrated = true};
    }
  }

  for (const auto& [seed, run] : runs) {
    if (!run.epochs) {
      ++found.missed;
      continue;
    }
    found.epochs.push_back(*run.epochs);
    found.calibrated += run.calibrated ? 1 : 0;
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
    found.coarse = static_cast<double>(*found.evaluate_every) >
                   kMostRounding * found.variation->coefficient * *found.steps;
  }
  using Verdict = Repeatability::Verdict;
  found.verdict = found.variation->low > limit                          ? Verdict::kShownAbove
                  : found.variation->high <= limit && found.missed == 0 ? Verdict::kShown
                                                                        : Verdict::kNotShown;
  return found;
}

}  // namespace etude::suite

#include "src/suite/results/reference_convergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "src/formats/json/json_document.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/calibration_text.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/olympic_mean.h"

namespace etude::suite {
namespace {

constexpr DocumentKind kCalibration{.name = "a calibration of the suite",
                                    .format = "etude-suite-calibration"};

// A setting that runs must share with a reference, as text; "" if it is unknown.
struct Setting {
  const char* pattern;  // "batch {}"
  std::string (*of_run)(const RunRecord& run);
  std::string (*of_reference)(const ConvergenceReference& reference);
};

std::string SettingText(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "";
}
std::string SettingText(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

constexpr std::array kSettings = {
    Setting{"the {} scale", [](const RunRecord& run) { return run.scale; },
            [](const ConvergenceReference& reference) { return reference.scale; }},
    Setting{"target {}", [](const RunRecord& run) { return SettingText(run.target); },
            [](const ConvergenceReference& reference) {
              return SettingText(std::optional(reference.target));
            }},
    Setting{"{} weights",
            [](const RunRecord& run) -> std::string {
              return run.settings && run.settings->contains("sparse") ? "sparse" : "all";
            },
            [](const ConvergenceReference&) -> std::string { return "all"; }},
    Setting{"batch {}", [](const RunRecord& run) { return SettingText(std::optional(run.batch)); },
            [](const ConvergenceReference& reference) { return SettingText(reference.batch); }},
    Setting{"optimizer {}", [](const RunRecord& run) { return run.optimizer; },
            [](const ConvergenceReference& reference) { return reference.optimizer; }},
    Setting{"precision {}", [](const RunRecord& run) { return run.precision; },
            [](const ConvergenceReference& reference) { return reference.precision; }},
    Setting{"evaluations every {} steps",
            [](const RunRecord& run) { return SettingText(StepsBetweenEvaluations(run)); },
            [](const ConvergenceReference& reference) {
              return SettingText(reference.evaluate_every);
            }},
    Setting{"{} training samples",
            [](const RunRecord& run) { return SettingText(std::optional(run.samples)); },
            [](const ConvergenceReference& reference) { return SettingText(reference.samples); }},
    Setting{
        "{} parameters",
        [](const RunRecord& run) { return SettingText(std::optional(run.parameters)); },
        [](const ConvergenceReference& reference) { return SettingText(reference.parameters); }},
};

// Returns the population standard deviation.
double DeviationOf(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / count);
}

// Quantiles of Student's t-distribution from one degree of freedom on, and of the normal
// distribution, its limit.
struct Level {
  std::array<double, 9> first;
  double normal = 0;
};
// 95 % quantiles: MLPerf's level.
constexpr Level kMlPerfLevel{
    {6.313752, 2.919986, 2.353363, 2.131847, 2.015048, 1.943180, 1.894579, 1.859548, 1.833113},
    1.6448536269514722};
// 99 % quantiles: for fewer runs than MLPerf requires.
constexpr Level kFewRunsLevel{
    {31.820516, 6.964557, 4.540703, 3.746947, 3.364930, 3.142668, 2.997952, 2.896459, 2.821438},
    2.3263478740408408};
constexpr size_t kMlPerfRuns = 5;

// Uses the table, then the first terms of the Cornish-Fisher expansion, exact to three digits.
double StudentQuantile(const Level& level, size_t freedom) {
  if (freedom <= level.first.size()) return level.first.at(freedom - 1);
  const double normal = level.normal;
  const double square = normal * normal;
  const auto n = static_cast<double>(freedom);
  return normal *
         (1 + (square + 1) / (4 * n) + (5 * square * square + 16 * square + 3) / (96 * n * n) +
          (3 * square * square * square + 19 * square * square + 17 * square - 15) /
              (384 * n * n * n));
}

struct RunCounts {
  size_t runs = 0;
  size_t in_mean = 0;  // runs included in the mean
};

// Returns the lower bound of a mean that the reference's spread explains, limited by the mean of
// its own fastest runs. `resolution`: epochs between evaluations, the accuracy of epochs to the
// target.
double LeastMean(const OlympicMean& reference, std::vector<double> epochs, double resolution,
                 const RunCounts& counts) {
  const double deviation = std::max(DeviationOf(epochs), resolution / (2 * std::numbers::sqrt3));
  const auto n = static_cast<double>(reference.count);
  const auto m = static_cast<double>(counts.in_mean);
  const Level& level = counts.runs < kMlPerfRuns ? kFewRunsLevel : kMlPerfLevel;
  const double explained =
      reference.value - StudentQuantile(level, reference.count + counts.in_mean - 2) * deviation *
                            std::sqrt(1 / n + 1 / m);
  std::ranges::sort(epochs);
  epochs.resize(std::min(epochs.size(), counts.runs));
  return std::min(explained, OlympicMeanOf({.values = std::move(epochs)})->value);
}

// Sums of equal figures may differ in their last digits.
bool IsBelow(double mean, double least) { return mean < least - 1e-9 * std::abs(least); }

ConvergenceReference ParseReference(const JsonMembers& task) {
  ConvergenceReference reference;
  const auto text = [&](const char* key) { return task.Text(key).value_or(""); };
  reference.task = text("id");
  if (const std::optional<double> target = task.Number("target")) {
    reference.target = *target;
  } else {
    task.Refuse("target", "a number");
  }
  reference.scale = text("scale");
  reference.precision = text("precision");
  reference.optimizer = text("optimizer");
  reference.batch = task.Whole("batch", 1);
  reference.samples = task.Whole("samples", 1);
  reference.parameters = task.Whole("parameters", 1);
  reference.evaluate_every = task.Whole("evaluate_every", 1);
  for (const char* key : {"fitted", "checked", "repeated"}) {
    for (const JsonMembers& run : task.Objects(key)) {
      // Calibrations without "epochs_to_target" ended checked runs at the target; for runs to the
      // end it is unknown.
      const bool says = run.Has("epochs_to_target");
      const std::optional<bool> reached = run.Truth("reached");
      if (!says && !reached) continue;
      const std::optional<double> epochs = says       ? run.Number("epochs_to_target")
                                           : *reached ? run.Number("epochs")
                                                      : std::nullopt;
      if (epochs) {
        reference.epochs.push_back(*epochs);
        reference.seeds.push_back(run.Whole("seed", 0));
      } else {
        ++reference.missed;
      }
    }
  }
  return reference;
}

// Finds the reference with the settings of the runs; nullptr, with the reason, if there is none.
const ConvergenceReference* FindReference(std::span<const RunRecord> runs,
                                          std::span<const ConvergenceReference> references,
                                          Convergence& found) {
  std::vector<const ConvergenceReference*> fitting;
  for (const ConvergenceReference& reference : references) {
    if (reference.task == runs.front().task) fitting.push_back(&reference);
  }
  found.verdict = Convergence::Verdict::kNoReference;
  found.why = "no reference for this task";
  if (fitting.empty()) return nullptr;
  for (const Setting& setting : kSettings) {
    for (const RunRecord& run : runs) {
      const std::string own = setting.of_run(run);
      if (own.empty()) continue;  // a run without an evaluation has not reached its target
      std::erase_if(fitting, [&](const ConvergenceReference* reference) {
        const std::string other = setting.of_reference(*reference);
        return !other.empty() && other != own;
      });
      if (fitting.empty()) {
        found.why = "no reference for " + fmt::format(fmt::runtime(setting.pattern), own);
        return nullptr;
      }
    }
  }
  const auto known = std::ranges::find_if(fitting, [](const ConvergenceReference* reference) {
    return std::ranges::none_of(kSettings, [&](const Setting& setting) {
      return setting.of_reference(*reference).empty();
    });
  });
  found.verdict = Convergence::Verdict::kUnknown;
  found.why = known == fitting.end() ? "the reference lacks some of its settings" : "";
  return known == fitting.end() ? nullptr : *known;
}

std::string EpochsText(double epochs) { return fmt::format("{:.4g}", epochs); }

}  // namespace

std::string_view Name(Convergence::Verdict verdict) {
  switch (verdict) {
    case Convergence::Verdict::kComparable: return "comparable";
    case Convergence::Verdict::kTooFast: return "too_fast";
    case Convergence::Verdict::kNoReference: return "no_reference";
    case Convergence::Verdict::kUnknown: return "unknown";
  }
  return "";
}

Result<std::vector<ConvergenceReference>> ParseReferences(const std::string& path,
                                                          std::string_view text,
                                                          const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document,
                         ParseDocument(path, text, kCalibration, context));
  Status status;
  const JsonMembers calibration(path, document, status);
  std::vector<ConvergenceReference> references;
  for (const JsonMembers& task : calibration.Objects("tasks")) {
    references.push_back(ParseReference(task));
  }
  ETUDE_RETURN_IF_ERROR(status);
  return references;
}

Result<std::vector<ConvergenceReference>> BuiltInReferences(const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(std::vector<ConvergenceReference> references,
                         ParseReferences("the suite's calibration", CalibrationText(), context));
  ETUDE_ASSIGN_OR_RETURN(std::vector<ConvergenceReference> repeated,
                         ParseReferences("the suite's variation", VariationText(), context));
  std::ranges::move(repeated, std::back_inserter(references));
  return references;
}

std::optional<int64_t> StepsBetweenEvaluations(const RunRecord& run) {
  if (run.evaluate_every) return run.evaluate_every;
  if (run.curve.empty()) return std::nullopt;
  if (run.curve.size() == 1 && run.settings) {
    const auto most = run.settings->find("most-steps");
    if (most != run.settings->end() && most->second == std::to_string(run.curve.front().step)) {
      return std::nullopt;
    }
  }
  return run.curve.front().step;
}

const QualityPoint* FirstReaching(const RunRecord& run, double target) {
  const Metric metric{run.metric, run.higher_is_better};
  const auto found = std::ranges::find_if(
      run.curve, [&](const QualityPoint& point) { return Reaches(metric, point.quality, target); });
  return found == run.curve.end() ? nullptr : &*found;
}

std::optional<double> EpochsTo(const RunRecord& run, double target) {
  const QualityPoint* point = FirstReaching(run, target);
  if (point == nullptr || run.samples == 0) return std::nullopt;
  return static_cast<double>(point->step) * static_cast<double>(run.batch) /
         static_cast<double>(run.samples);
}

const ConvergenceReference* ReferenceFor(const RunRecord& run,
                                         std::span<const ConvergenceReference> references) {
  Convergence found;
  return FindReference({&run, 1}, references, found);
}

Convergence JudgeConvergence(std::span<const RunRecord> runs,
                             std::span<const ConvergenceReference> references) {
  Convergence found;
  if (runs.empty() || !runs.front().target) {
    found.why = "missing target";
    return found;
  }
  std::vector<double> epochs;
  for (const RunRecord& run : runs) {
    const auto own = run.target ? EpochsTo(run, *run.target) : std::nullopt;
    if (own) epochs.push_back(*own);
  }
  const auto mean = OlympicMeanOf({.values = epochs, .missed = runs.size() - epochs.size()});
  if (mean) found.epochs = mean->value;

  const ConvergenceReference* reference = FindReference(runs, references, found);
  if (reference == nullptr) return found;
  if (reference->missed != 0 || reference->epochs.size() < 2) {
    found.why = reference->missed != 0 ? "a run of the reference missed the target"
                                       : "the reference has fewer than two runs";
    return found;
  }
  const OlympicMean middle = *OlympicMeanOf({.values = reference->epochs});
  found.reference = middle.value;
  if (!mean) {
    found.why = "the target was missed";
    return found;
  }
  const double resolution = static_cast<double>(*reference->evaluate_every) *
                            static_cast<double>(*reference->batch) /
                            static_cast<double>(*reference->samples);
  found.least = LeastMean(middle, reference->epochs, resolution,
                          {.runs = runs.size(), .in_mean = mean->count});
  found.verdict = IsBelow(mean->value, *found.least) ? Convergence::Verdict::kTooFast
                                                     : Convergence::Verdict::kComparable;
  return found;
}

std::string VerdictText(const Convergence& convergence) {
  switch (convergence.verdict) {
    case Convergence::Verdict::kComparable: return "comparable";
    case Convergence::Verdict::kTooFast: return "converged too fast: not comparable";
    case Convergence::Verdict::kNoReference: return convergence.why;
    case Convergence::Verdict::kUnknown: return "unknown: " + convergence.why;
  }
  return "";
}

std::string ToText(const Convergence& convergence) {
  std::string text;
  if (convergence.epochs) text = EpochsText(*convergence.epochs) + " epochs to the target";
  if (convergence.least) {
    text += fmt::format(" (reference {}, at least {})", EpochsText(*convergence.reference),
                        EpochsText(*convergence.least));
  }
  return text + (text.empty() ? "" : ": ") + VerdictText(convergence);
}

nlohmann::ordered_json ToJson(const Convergence& convergence) {
  return {{"verdict", Name(convergence.verdict)},
          {"why", convergence.why.empty() ? nlohmann::ordered_json()
                                          : nlohmann::ordered_json(convergence.why)},
          {"epochs", OrNull(convergence.epochs)},
          {"reference_epochs", OrNull(convergence.reference)},
          {"least_epochs", OrNull(convergence.least)}};
}

}  // namespace etude::suite

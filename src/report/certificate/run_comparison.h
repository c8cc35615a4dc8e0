#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/compare/machine_noise.h"
#include "src/analysis/compare/paired_comparison.h"
#include "src/formats/job/capture_folder.h"
#include "src/report/certificate/run_facts.h"
#include "src/report/text/table.h"

namespace etude {

// What is measured of a step of the original and of the replay. In the order of StepMetrics().
enum class StepMetric : uint8_t {
  kCpuTime,
  kWallTime,
  kCpuTimeWithoutGaps,  // in the replay; the original's is whole
  kWallTimeWithoutGaps,
  kPageFaults,
  kPeakMemory,
  kAverageMemory,
  kPeakResident,
  kAverageResident,
  kVoluntarySwitches,
  kInvoluntarySwitches,
  kInstructions,
  kCycles,
  kCacheMisses,
  kBranchMisses,
  kFlopRate,
  kByteRate,
  kGpuEnergy,
  kGpuPower,
  kGpuUtilisation,
  kGpuMemoryUtilisation,
  kGpuMemory,
};
inline constexpr size_t kStepMetricCount = static_cast<size_t>(StepMetric::kGpuMemory) + 1;

struct StepMetricInfo {
  StepMetric metric;
  std::string_view name;      // stable: in files and for --bar
  std::string_view title;     // for people
  Unit unit;                  // kTime, kBytes, kCount or kNumber
  std::optional<double> bar;  // the error that is allowed by default; nullopt: no verdict
};
std::span<const StepMetricInfo, kStepMetricCount> StepMetrics();
const StepMetricInfo& InfoOf(StepMetric metric);

// Figures of one step of one side, by metric; nullopt: not available.
struct StepFigures {
  std::array<std::optional<double>, kStepMetricCount> values;

  std::optional<double>& operator[](StepMetric metric) {
    return values[static_cast<size_t>(metric)];
  }
  const std::optional<double>& operator[](StepMetric metric) const {
    return values[static_cast<size_t>(metric)];
  }
};

// A step of each side, one after the other.
struct StepPair {
  size_t start = 0;  // in which of the starts of both sides it ran, from 0
  bool original_first = true;
  StepFigures original;
  StepFigures replay;
};

// Original and replay by one metric.
struct MetricComparison {
  StepMetric metric = StepMetric::kCpuTime;
  std::optional<PairedComparison> figures;  // nullopt: not available here
  std::string reason;                       // why it is not
  std::optional<double> bar;
  std::optional<BarVerdict> verdict;  // if there is a bar, and figures
  // Of what is undetermined: with so many pairs, of which as many starts have a share, the interval
  // would be narrow enough to tell, if it narrows with their square root. nullopt: nobody knows, or
  // more than kPairsMost.
  std::optional<int64_t> pairs_to_decide;
};
inline constexpr int64_t kPairsMost = 100'000;

// Whether no bar is missed and none undetermined.
bool AllMet(std::span<const MetricComparison> metrics);

// A run of the original program in turn with its replay.
struct RunComparison {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::vector<std::string> command;
  std::string benchmark;  // the program that ran in place of a replay; "" for a replay
  std::optional<int64_t> threads;
  int64_t pairs_wanted = 0;
  int64_t starts = 1;
  uint64_t seed = 0;
  double seconds = 0;          // that all starts took; 0: unknown
  std::string ended;           // why there are fewer pairs than wanted; ""
  int64_t steps_passed = 0;    // of the original, warm-up
  int64_t steps_of_other = 0;  // of the original, of other signatures than the recorded one
  std::string etude;           // the version that made it; "": this one
  std::string measured;        // when it was over: "2026-11-22T12:00:00Z"; "" if unknown
  std::string gaps;            // of the program in the replay: "recorded", "none"; "" if unknown
  MachineFacts machine;
  NamedTexts versions;                    // of the original
  std::optional<NamedTexts> environment;  // its variables that change how fast torch runs
  ReplayFacts replay;
  MachineNoise noise;
  std::vector<std::string> notes;
  std::vector<StepPair> pairs;
  std::vector<MetricComparison> metrics;

  bool all_met() const { return AllMet(metrics); }
};

// Bars by metric, nullopt for none.
using StepBars = std::array<std::optional<double>, kStepMetricCount>;
StepBars DefaultBars();

// Compares `run.pairs` by every metric. `reasons`: why a metric that is absent is absent, by
// metric.
void JudgeRun(RunComparison& run, const StepBars& bars,
              const std::array<std::string, kStepMetricCount>& reasons);
// By one metric; without figures where no pair has them on both sides.
MetricComparison JudgeMetric(const RunComparison& run, StepMetric metric,
                             const std::optional<double>& bar);
// Pairs that have the metric on both sides, by start.
std::vector<std::vector<FigurePair>> PairsByStart(const RunComparison& run, StepMetric metric);

// The file that `etude compare --run` leaves for `rank`: compare.N.json.
std::string RunComparisonFile(const CaptureFolder& folder, const CaptureRank& rank);

// A figure of a metric, "1.234 ms" or "∞", and an error, "+1.2 %".
std::string FigureText(double value, Unit unit);
std::string PercentText(double value);
// "1.234 ms [1.200 ms, 1.300 ms]"; "unknown".
std::string EstimateText(const std::optional<Estimate>& estimate,
                         const std::function<std::string(double)>& text);
// "machine noise: …".
std::string NoiseText(const MachineNoise& noise);
// What is not available, by reason; whether all bars are met, and which are not. Lines.
std::string AbsentText(std::span<const MetricComparison> metrics);
std::string VerdictText(std::span<const MetricComparison> metrics);
// For people.
std::string RunComparisonText(const RunComparison& run);
// `columns`, and those of the figures of both sides, their error, its bar and the verdict; the
// cells of `metric`, which has figures, in them, with both sides' figures times `scale`.
std::vector<Table::Column> WithFigures(std::vector<Table::Column> columns);
void AddFigures(const MetricComparison& metric, double scale, std::vector<Cell>& cells);
// The same as a table, of several ranks.
Table RunComparisonTable(const std::vector<RunComparison>& runs);

}  // namespace etude

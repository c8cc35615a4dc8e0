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

// Metric of a step of the original and of the replay. In the order of StepMetrics().
enum class StepMetric : uint8_t {
  kCpuTime,
  kWallTime,
  kCpuTimeWithoutGaps,  // gaps are left out of the replay only
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
  std::string_view title;     // for readers
  Unit unit;                  // kTime, kBytes, kCount or kNumber
  std::optional<double> bar;  // maximum error by default; nullopt: no verdict
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

// Two consecutive steps, one of each side.
struct StepPair {
  size_t start = 0;  // start of both programs in which the pair ran, from 0
  bool original_first = true;
  StepFigures original;
  StepFigures replay;
};

// Comparison of original and replay by one metric.
struct MetricComparison {
  StepMetric metric = StepMetric::kCpuTime;
  std::optional<PairedComparison> figures;  // nullopt: not available
  std::string reason;                       // reason for missing figures
  std::optional<double> bar;
  std::optional<BarVerdict> verdict;  // set if there are a bar and figures
  // For undetermined verdicts: estimated number of pairs after which the interval is narrow enough,
  // assuming proportionally more starts and an interval that shrinks with the square root. nullopt:
  // unknown, or above kPairsMost.
  std::optional<int64_t> pairs_to_decide;
};
inline constexpr int64_t kPairsMost = 100'000;

// Returns whether no bar is missed or undetermined.
bool AllMet(std::span<const MetricComparison> metrics);

// Comparison of the original program, running alternately with its replay.
struct RunComparison {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::vector<std::string> command;
  std::string benchmark;  // program that ran instead of a replay; "" for a replay
  std::optional<int64_t> threads;
  int64_t pairs_wanted = 0;
  int64_t starts = 1;
  uint64_t seed = 0;
  double seconds = 0;          // total of all starts; 0: unknown
  std::string ended;           // reason for fewer pairs than wanted; "" if none
  int64_t steps_passed = 0;    // warm-up steps of the original
  int64_t steps_of_other = 0;  // steps of the original with other signatures than the recorded one
  std::string etude;           // version that made the comparison; "": this version
  std::string measured;        // end of the run: "2026-11-22T12:00:00Z"; "" if unknown
  std::string gaps;            // gaps in the replay: "recorded", "none"; "" if unknown
  MachineFacts machine;
  NamedTexts versions;                    // of the original
  std::optional<NamedTexts> environment;  // variables that affect the speed of torch
  ReplayFacts replay;
  MachineNoise noise;
  std::vector<std::string> notes;
  std::vector<StepPair> pairs;
  std::vector<MetricComparison> metrics;

  bool all_met() const { return AllMet(metrics); }
};

// Bars by metric; nullopt: none.
using StepBars = std::array<std::optional<double>, kStepMetricCount>;
StepBars DefaultBars();

// Compares `run.pairs` by every metric. `reasons`: why a metric is not available, by metric.
void JudgeRun(RunComparison& run, const StepBars& bars,
              const std::array<std::string, kStepMetricCount>& reasons);
// Compares by one metric. Figures are missing if no pair has the metric on both sides.
MetricComparison JudgeMetric(const RunComparison& run, StepMetric metric,
                             const std::optional<double>& bar);
// Returns the pairs that have the metric on both sides, by start.
std::vector<std::vector<FigurePair>> PairsByStart(const RunComparison& run, StepMetric metric);

// Returns the file name of the rank's `etude compare --run` result: compare.N.json.
std::string RunComparisonFile(const CaptureFolder& folder, const CaptureRank& rank);

// Return a figure of a metric, "1.234 ms" or "∞", and an error, "+1.2 %".
std::string FigureText(double value, Unit unit);
std::string PercentText(double value);
// Returns "1.234 ms [1.200 ms, 1.300 ms]" or "unknown".
std::string EstimateText(const std::optional<Estimate>& estimate,
                         const std::function<std::string(double)>& text);
// Returns "machine noise: …".
std::string NoiseText(const MachineNoise& noise);
// Return lines with the unavailable metrics by reason, and whether all bars are met, with those
// that are not.
std::string AbsentText(std::span<const MetricComparison> metrics);
std::string VerdictText(std::span<const MetricComparison> metrics);
// Returns a readable summary.
std::string RunComparisonText(const RunComparison& run);
// Returns `columns` followed by columns for both sides' figures, error, bar and verdict. AddFigures
// appends the cells of `metric`, which must have figures, with both sides' figures multiplied by
// `scale`.
std::vector<Table::Column> WithFigures(std::vector<Table::Column> columns);
void AddFigures(const MetricComparison& metric, double scale, std::vector<Cell>& cells);
// Returns a table of several ranks.
Table RunComparisonTable(const std::vector<RunComparison>& runs);

}  // namespace etude

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/report/text/table.h"
#include "src/sim/machine/machine_file.h"

// Parts of `etude calibrate` that need no communication: sizes, checks, noise and the table.
namespace etude {

// Returns the kinds that can be measured, in the order of measurement.
const std::vector<MeasuredKind>& CalibratedKinds();
// Communications and computations to measure, each of them once.
struct CalibratedTypes {
  std::vector<MeasuredKind> kinds;  // of communication
  std::vector<ComputationType> computations;

  friend bool operator==(const CalibratedTypes&, const CalibratedTypes&) = default;
};
// Parses names of communications and computations, separated by commas; "" is all. kUsage for an
// unknown name.
Result<CalibratedTypes> ParseTypes(std::string_view text);
// Parses numbers of ranks, separated by commas: distinct, each at least 2, ascending in the result.
// kUsage otherwise.
Result<std::vector<int64_t>> ParseRankCounts(std::string_view text);
// Parses sizes: "8-64MiB", the powers of two of a range with both its ends, or a list such as
// "8,4KiB,1MiB". kUsage otherwise, and for a range whose sizes are all in one element.
Result<std::vector<int64_t>> ParseSizes(std::string_view text);

// Sizes of a kind at a number of ranks.
struct SizePlan {
  std::vector<int64_t> sizes;   // of the series
  std::vector<int64_t> checks;  // in the middle of every second pair of sizes
};

// Returns `sizes` rounded up to whole elements of float32 for each part that a rank sends, with
// their checks. A barrier has the size 0 only.
SizePlan PlanSizes(const MeasuredKind& kind, int64_t ranks, const std::vector<int64_t>& sizes);

// Returns the sizes of a computation: `sizes` rounded up to whole elements, or of the square
// matrices in their range whose number of rows is 2^n or 3·2^n, up to MostRows.
std::vector<int64_t> SizesOfComputation(ComputationType type, DType dtype, bool on_cpu,
                                        const std::vector<int64_t>& sizes);
// Returns the rows of the largest measured product, which takes up to about 0.2 s.
constexpr int64_t MostRows(bool on_cpu) { return on_cpu ? 2048 : 8192; }
// Types of elements whose computations are measured. CPUs have no fast products of float16.
std::vector<DType> TypesOfComputation(ComputationType type, bool on_cpu);

// Combines the measurement of a size in round `round`, counted from 0, with those of the earlier
// rounds: the mean of times, its spread, and the cores by the CPU times of all rounds.
void AddRound(const MeasuredSeries::Point& other, int64_t round, MeasuredSeries::Point& all);

// Errors of a check: predicted / measured − 1.
struct CheckErrors {
  double median = 0;           // signed
  double median_absolute = 0;  // of the absolute values
  double worst = 0;            // signed, of the largest absolute value
};
std::optional<CheckErrors> ErrorsOf(const MeasuredCheck& check);

// Median spreads of the sizes from kLargeBytes and of smaller ones; nullopt without such sizes.
struct SeriesSpread {
  std::optional<double> large;
  std::optional<double> small;
};
SeriesSpread SpreadOf(const MeasuredSeries& series);
inline constexpr int64_t kLargeBytes = 64 * 1024;

// As AddRound, for computations.
void AddRound(const MeasuredComputation::Point& other, int64_t round,
              MeasuredComputation::Point& all);

// Limits of noise. Above one of them, a series does not describe the machine.
inline constexpr double kMostSpread = 0.25;      // each of SeriesSpread
inline constexpr double kMostCheckError = 0.25;  // CheckErrors::median_absolute
// Returns the reason why a series is too noisy; "" if it is not. `check` may be null.
std::string WhyNoisy(const MeasuredSeries& series, const MeasuredCheck* check);

// Likewise for a computation, by the median spread of its sizes.
std::string WhyNoisy(const MeasuredComputation& computation);

// Fills in `predicted_ns` of the check by its series.
Status Predict(const MeasuredSeries& series, MeasuredCheck& check);

// Adds a series and its check to the file, in place of earlier ones, and removes the network.
void Put(const MeasuredSeries& series, const MeasuredCheck& check, MachineFile& file);
// Likewise for a computation.
void Put(const MeasuredComputation& computation, MachineFile& file);

// Returns whether the file has a series of this kind, these ranks and exactly these sizes.
bool Has(const MachineFile& file, const MeasuredKind& kind, int64_t ranks, const SizePlan& plan);

// A measured series, for the table.
struct CalibratedSeries {
  MeasuredSeries series;
  MeasuredCheck check;
  std::string state;  // "measured", "kept", "noisy", "refused"
};
Table CalibrationTable(const std::vector<CalibratedSeries>& all);

}  // namespace etude

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/statistics/variation.h"
#include "src/suite/results/reference_convergence.h"
#include "src/suite/results/score.h"
#include "src/suite/subset/task_factors.h"

namespace etude::suite {

// Epochs of a task to its target over runs with different seeds, and their variation
// (docs/models/suite_subset.md).
struct Repeatability {
  enum class Verdict : uint8_t {
    kShown,       // the upper bound of the variation is at most the limit
    kNotShown,    // the bounds include the limit
    kShownAbove,  // the lower bound is above the limit
    kUnknown,     // fewer than two runs reached the target
  };
  Verdict verdict = Verdict::kUnknown;
  std::vector<double> epochs;  // of runs that reached the target
  size_t missed = 0;           // runs that missed it; with any the verdict is never kShown
  size_t calibrated = 0;       // number of `epochs` that are from the built-in calibration
  size_t left_out = 0;         // runs that reached it with other intervals between evaluations
  std::optional<double> mean;  // epochs
  std::optional<Variation> variation;
  std::optional<double> steps;            // mean, to the target
  std::optional<int64_t> evaluate_every;  // steps, of the runs of `epochs`
  // Whether the interval between evaluations is more than 0.3 of the deviation, so that the
  // variation is partly rounding; nullopt if unknown.
  std::optional<bool> coarse;

  // Returns the largest interval that is not coarse, at least 1 step; nullopt if unknown.
  std::optional<int64_t> MostSteps() const;
};
// Returns "shown", "not_shown", "shown_above" or "unknown": stable, appears in --json.
std::string_view Name(Repeatability::Verdict verdict);

// Maximum interval between evaluations, as a share of the standard deviation in steps.
inline constexpr double kMostRounding = 0.3;

// Number of seeds that suffice for a variation.
inline constexpr size_t kEnoughSeeds = 5;

// Combines a task's runs with the same interval between evaluations by seed: kept runs, then those
// of the characterization, then those of the built-in calibration with the same settings. Of
// several intervals, the shortest with at least kEnoughSeeds seeds counts, or else the one with
// most seeds; missed runs count for any. `limit`: maximum variation, as a share.
Repeatability RepeatabilityOf(const TaskFactors& task, std::string_view scale,
                              std::span<const Score> kept,
                              std::span<const ConvergenceReference> references, double limit);

}  // namespace etude::suite

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace etude {

// One figure of two sides that ran alternately.
struct FigurePair {
  double original = 0;
  double replay = 0;
};

// A figure and its 95 % interval. `high` is infinite if the original may be 0.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Medians of both sides and the error of the replay: its median over the original's, minus 1. If
// both medians are 0 the error is 0.
struct PairedComparison {
  size_t pairs = 0;
  std::optional<Estimate> original;  // nullopt without pairs
  std::optional<Estimate> replay;
  // nullopt if a figure is negative, which has no relative error. Infinite if the original is 0 and
  // the replay is not.
  std::optional<Estimate> error;
};

// Returns the number of resamples for a number of pairs: 10,000, and fewer from 1,000 pairs on, so
// that long measurements are evaluated in seconds; at least 1,000.
size_t ResamplesOf(size_t pairs);

// Compares the pairs of each start of the two programs; starts without pairs are ignored. Intervals
// are those of the percentile bootstrap over starts and, within them, over pairs
// (docs/models/paired_comparison.md). Deterministic for given pairs and seed on all machines.
PairedComparison ComparePairs(std::span<const std::vector<FigurePair>> starts, uint64_t seed);

// Compares the same two sides measured in two places, for example on two machines. In the result,
// `original` is the ratio of its median there to that here, `replay` the same for the replay, and
// `error` the ratio of the replay's to the original's ratio, minus 1; infinite if a figure grew
// from 0. `pairs` is that of the measurement with fewer. Each measurement is resampled
// independently, as above.
PairedComparison CompareRatios(std::span<const std::vector<FigurePair>> here,
                               std::span<const std::vector<FigurePair>> there, uint64_t seed);

enum class BarVerdict : uint8_t {
  kMet,           // the whole interval of the error is within the bar
  kMissed,        // it is outside
  kUndetermined,  // it straddles the bar, there are too few pairs, or the error is unknown
};

// Returns "met", "missed" or "undetermined".
std::string_view Name(BarVerdict verdict);
std::optional<BarVerdict> BarVerdictFromName(std::string_view name);

// Min pairs for a verdict: with fewer, the interval of a median is too narrow.
inline constexpr size_t kLeastPairs = 10;

// Returns the verdict for `bar`, the max error in either direction, as a fraction.
BarVerdict Judge(const PairedComparison& comparison, double bar);

}  // namespace etude

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace etude {

// One figure of two sides that ran in turn.
struct FigurePair {
  double original = 0;
  double replay = 0;
};

// A figure and its 95 % interval. `high` is infinite where the original may be 0.
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
  // nullopt if a figure is negative, of which there is no relative error. An infinite value: the
  // original is 0 and the replay is not.
  std::optional<Estimate> error;
};

// How often so many pairs are resampled: 10,000 times, and less often from 1,000 pairs on, so that
// long measurements are judged in seconds; 1,000 times at least.
size_t ResamplesOf(size_t pairs);

// The pairs of each start of the two programs; starts without pairs are passed over. Intervals are
// those of the percentile bootstrap over starts and, within them, over pairs
// (docs/models/paired_comparison.md). Same pairs and seed: the same result, whatever the machine.
PairedComparison ComparePairs(std::span<const std::vector<FigurePair>> starts, uint64_t seed);

// The same two sides measured here and there, on two machines for example. Of the result `original`
// is how many times its median there is that here, `replay` the same of the replay, and `error` how
// far the replay's ratio is from the original's: their ratio, minus 1; infinite where something
// grew from 0. `pairs`: of the measurement with fewer. Each is resampled by itself, as above.
PairedComparison CompareRatios(std::span<const std::vector<FigurePair>> here,
                               std::span<const std::vector<FigurePair>> there, uint64_t seed);

enum class BarVerdict : uint8_t {
  kMet,           // the whole interval of the error lies within the bar
  kMissed,        // it lies outside
  kUndetermined,  // it straddles the bar, or there are too few pairs, or the error is unknown
};

// "met", "missed", "undetermined".
std::string_view Name(BarVerdict verdict);
std::optional<BarVerdict> BarVerdictFromName(std::string_view name);

// Fewer pairs decide nothing: the interval of a median is too narrow then.
inline constexpr size_t kLeastPairs = 10;

// `bar`: the largest error, to either side, as a share.
BarVerdict Judge(const PairedComparison& comparison, double bar);

}  // namespace etude

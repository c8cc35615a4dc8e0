#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Median and spread of all measured times.
struct TimeSummary {
  Nanos median;
  Nanos p25;
  Nanos p75;
  Nanos min;
  size_t count = 0;
};

// Returns the quantile of `sorted`, which must not be empty, with linear interpolation between the
// two nearest ranks.
Nanos Quantile(const std::vector<Nanos>& sorted, double quantile);

// Summarises `times`, in any order.
TimeSummary Summarise(std::vector<Nanos> times);

// Returns the median, the mean of the middle two for an even number; nullopt if empty.
std::optional<Nanos> Median(std::vector<Nanos> times);
std::optional<int64_t> Median(std::vector<int64_t> counts);

// Returns the mean of at least one time, rounded down.
Nanos Mean(const std::vector<Nanos>& times);

// Returns the standard error of the mean of at least one time, as a share of the mean: what other
// measurements of as many times would vary by. 0 for a single time.
double ErrorOfMean(const std::vector<Nanos>& times);

// Returns the median of `replay` over that of `original`, minus 1; nullopt if one is unknown.
std::optional<double> RelativeError(const std::optional<TimeSummary>& original,
                                    const std::optional<TimeSummary>& replay);

}  // namespace etude

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Median and spread of a number of measured times. Nothing is left out of them.
struct TimeSummary {
  Nanos median;
  Nanos p25;
  Nanos p75;
  Nanos min;
  size_t count = 0;
};

// The share `quantile` of `sorted`, which is not empty, lies below it; interpolates linearly
// between the two nearest ranks.
Nanos Quantile(const std::vector<Nanos>& sorted, double quantile);

// `times` need not be sorted.
TimeSummary Summarise(std::vector<Nanos> times);

// Half-way between the two in the middle of an even number; nullopt of none.
std::optional<Nanos> Median(std::vector<Nanos> times);
std::optional<int64_t> Median(std::vector<int64_t> counts);
// The same of at least one figure, which it reorders.
double MedianInPlace(std::vector<double>& figures);

// Median of `replay` over median of `original`, minus 1; nullopt if one is unknown.
std::optional<double> RelativeError(const std::optional<TimeSummary>& original,
                                    const std::optional<TimeSummary>& replay);

}  // namespace etude

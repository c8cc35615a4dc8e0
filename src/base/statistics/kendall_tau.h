#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "src/base/statistics/percentile_interval.h"

namespace etude {

// Returns Kendall's tau-b of paired figures (Kendall 1945), −1 to 1: (concordant − discordant) /
// √((pairs − ties of a) · (pairs − ties of b)). nullopt if all figures of a side are equal.
std::optional<double> KendallTau(std::span<const double> a, std::span<const double> b);

// Returns its 95 % interval by the percentile bootstrap over the pairs of figures. Copies of a pair
// are tied on both sides and change only the weights. nullopt without a tau. Deterministic for the
// same figures and seed.
std::optional<FigureInterval> KendallInterval(std::span<const double> a, std::span<const double> b,
                                              uint64_t seed, size_t resamples = 10'000);

}  // namespace etude

#include "src/analysis/compare/machine_noise.h"

#include <algorithm>

#include "src/analysis/time/time_summary.h"

namespace etude {

double Spread::share() const {
  if (p10.count <= 0) return 0;
  return static_cast<double>(p90.count) / static_cast<double>(p10.count) - 1;
}

Spread SpreadOf(std::vector<Nanos> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  return {.p10 = Quantile(times, 0.1), .median = Quantile(times, 0.5), .p90 = Quantile(times, 0.9)};
}

}  // namespace etude

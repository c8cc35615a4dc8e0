#include "src/transform/edit/copy_rate.h"

#include <vector>

#include "src/base/statistics/median.h"
#include "src/run/exclusive_times.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {
namespace {

constexpr uint64_t kLarge = 64 << 10;
constexpr uint64_t kSmall = 4 << 10;

}  // namespace

Nanos CopyRate::TimeOf(int64_t bytes) const {
  return fixed + Nanos{static_cast<int64_t>(nanos_per_byte * static_cast<double>(bytes))};
}

std::optional<CopyRate> FindCopyRate(const Trace& trace) {
  const auto costs = OperatorCosts(trace);
  const auto times = SelfTimes(trace);
  std::vector<double> per_byte;
  std::vector<double> small;
  ForEachNode(trace, [&](NodeId node) {
    const auto& cost = costs[node.index()];
    const auto& time = times[node.index()];
    if (!cost || cost->done_below || cost->bytes == 0 || !time || time->count <= 0) return;
    if (trace.place(node) == Place::kDevice ||
        IsMatrixOperator(BaseOperatorName(trace.name(node)))) {
      return;
    }
    const auto nanos = static_cast<double>(time->count);
    if (cost->bytes >= kLarge) per_byte.push_back(nanos / static_cast<double>(cost->bytes));
    if (cost->bytes <= kSmall) small.push_back(nanos);
  });
  if (per_byte.empty()) return std::nullopt;
  const double fixed = small.empty() ? 0 : MedianInPlace(small);
  return CopyRate{.fixed = Nanos{static_cast<int64_t>(fixed)},
                  .nanos_per_byte = MedianInPlace(per_byte)};
}

}  // namespace etude

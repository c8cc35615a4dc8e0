#pragma once

#include <cstdint>
#include <vector>

#include "src/base/units.h"
#include "src/transform/operators/operator_table.h"

namespace etude {

// Limits of the measurement of operators.
inline constexpr int64_t kLeastRounds = 7;
inline constexpr int64_t kUsualMostRounds = 40;
// An operator is measured until the spread of its rounds is at most this.
inline constexpr double kStableSpread = 0.05;
// Above this spread, a time does not describe the machine, unless its rounds differ by less than
// clocks and interrupts explain.
inline constexpr double kMostOperatorSpread = 0.30;
inline constexpr double kNegligibleSpreadNs = 1000;

// Times of one operator, in rounds between which other operators run. The time is the median of the
// rounds' medians.
class OperatorRounds {
 public:
  // Adds the times of a round's calls, if any.
  void Add(const std::vector<Nanos>& calls);

  int64_t rounds() const { return static_cast<int64_t>(medians_.size()); }
  // Returns whether further rounds would change little.
  bool is_stable() const;
  // Requires a round.
  MeasuredCall Time() const;

 private:
  std::vector<double> medians_;  // ns, by round
  int64_t calls_ = 0;
};

}  // namespace etude

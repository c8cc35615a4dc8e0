#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Change of a recording's time line at one moment.
struct TimeChange {
  Nanos at;
  Nanos length;  // inserted there; negative: cut out, from `at` on
};

// Moments of a recording after such changes. Parts that are cut out must not overlap. Immutable;
// const methods are thread-safe.
class TimeShift {
 public:
  // Changes at the same moment keep their order.
  explicit TimeShift(std::vector<TimeChange> changes);

  // Return the new moment of something that begins or ends at `moment`. What begins where time is
  // inserted is later, and what ends there is not. A moment in a part that is cut out becomes the
  // moment where it was.
  Nanos Begin(Nanos moment) const;
  Nanos End(Nanos moment) const;
  // Returns the new moment at which the inserted time of a change begins.
  Nanos BeginOf(size_t change) const { return changes_[change].at + before_[change]; }
  // Returns the changes by moment.
  std::span<const TimeChange> changes() const { return changes_; }

 private:
  Nanos After(size_t changes, Nanos moment) const;

  std::vector<TimeChange> changes_;  // by moment
  std::vector<Nanos> before_;        // sums of the lengths of earlier changes
};

}  // namespace etude

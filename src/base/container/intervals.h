#pragma once

#include <span>
#include <vector>

#include "src/base/units.h"

namespace etude {

// A stretch of time, from `begin` up to, but without, `end`.
struct Interval {
  Nanos begin;
  Nanos end;

  Nanos length() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A set of moments: stretches of time that neither overlap nor touch, in order. Immutable; const
// methods may be called from several threads.
class TimeSet {
 public:
  TimeSet() = default;
  // The union of `intervals`, in any order; those without length count for nothing. O(n log n).
  explicit TimeSet(std::vector<Interval> intervals);

  std::span<const Interval> intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  Nanos length() const { return lengths_.empty() ? Nanos{} : lengths_.back(); }
  // Length of what lies within `window`. O(log n).
  Nanos Within(const Interval& window) const;

  // What is in this set and not in `other`, or in one of them. O(n log n) at most.
  TimeSet Without(const TimeSet& other) const;
  TimeSet Or(const TimeSet& other) const;

 private:
  Nanos Before(Nanos moment) const;
  void Add(const Interval& interval);

  std::vector<Interval> intervals_;
  std::vector<Nanos> lengths_;  // of the intervals up to and with this one
};

}  // namespace etude

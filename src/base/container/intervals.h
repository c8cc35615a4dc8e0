#pragma once

#include <span>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Half-open time interval [begin, end).
struct Interval {
  Nanos begin;
  Nanos end;

  Nanos length() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Set of disjoint, non-touching time intervals in order. Immutable; const methods are thread-safe.
class TimeSet {
 public:
  TimeSet() = default;
  // Builds the union of `intervals`, in any order; empty intervals are ignored. O(n log n).
  explicit TimeSet(std::vector<Interval> intervals);

  std::span<const Interval> intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  Nanos length() const { return lengths_.empty() ? Nanos{} : lengths_.back(); }
  // Returns the length of the part within `window`. O(log n).
  Nanos Within(const Interval& window) const;

  // Return the difference and the union of this set and `other`. O(n log n) at most.
  TimeSet Without(const TimeSet& other) const;
  TimeSet Or(const TimeSet& other) const;

 private:
  Nanos Before(Nanos moment) const;
  void Add(const Interval& interval);

  std::vector<Interval> intervals_;
  std::vector<Nanos> lengths_;  // cumulative length, this interval included
};

}  // namespace etude

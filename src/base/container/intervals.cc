#include "src/base/container/intervals.h"

#include <algorithm>

namespace etude {

TimeSet::TimeSet(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  for (const Interval& interval : intervals) Add(interval);
}

// Adds `interval`, which must not begin before the last one.
void TimeSet::Add(const Interval& interval) {
  if (interval.end <= interval.begin) return;
  if (intervals_.empty() || intervals_.back().end < interval.begin) {
    lengths_.push_back(length() + interval.length());
    intervals_.push_back(interval);
  } else if (intervals_.back().end < interval.end) {
    lengths_.back() = lengths_.back() + (interval.end - intervals_.back().end);
    intervals_.back().end = interval.end;
  }
}

Nanos TimeSet::Before(Nanos moment) const {
  const auto next = std::ranges::lower_bound(intervals_, moment, {}, &Interval::begin);
  if (next == intervals_.begin()) return Nanos{};
  const auto last = static_cast<size_t>(next - intervals_.begin()) - 1;
  const Nanos after = intervals_[last].end - std::min(moment, intervals_[last].end);
  return lengths_[last] - after;
}

Nanos TimeSet::Within(const Interval& window) const {
  if (window.end <= window.begin) return Nanos{};
  return Before(window.end) - Before(window.begin);
}

TimeSet TimeSet::Without(const TimeSet& other) const {
  TimeSet result;
  size_t next = 0;
  for (const Interval& interval : intervals_) {
    Nanos begin = interval.begin;
    while (next < other.intervals_.size() && other.intervals_[next].end <= begin) ++next;
    for (size_t i = next; i < other.intervals_.size() && other.intervals_[i].begin < interval.end;
         ++i) {
      result.Add({begin, other.intervals_[i].begin});
      begin = other.intervals_[i].end;
      next = i;
    }
    result.Add({begin, interval.end});
  }
  return result;
}

TimeSet TimeSet::Or(const TimeSet& other) const {
  std::vector<Interval> all = intervals_;
  all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
  return TimeSet(std::move(all));
}

}  // namespace etude

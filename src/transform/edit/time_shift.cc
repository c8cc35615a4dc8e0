#include "src/transform/edit/time_shift.h"

#include <algorithm>
#include <utility>

namespace etude {

TimeShift::TimeShift(std::vector<TimeChange> changes) : changes_(std::move(changes)) {
  std::ranges::stable_sort(changes_, {}, &TimeChange::at);
  Nanos before;
  before_.reserve(changes_.size());
  for (const TimeChange& change : changes_) {
    before_.push_back(before);
    before = before + change.length;
  }
}

Nanos TimeShift::Begin(Nanos moment) const {
  const auto next = std::ranges::upper_bound(changes_, moment, {}, &TimeChange::at);
  return After(static_cast<size_t>(next - changes_.begin()), moment);
}

Nanos TimeShift::End(Nanos moment) const {
  const auto next = std::ranges::lower_bound(changes_, moment, {}, &TimeChange::at);
  return After(static_cast<size_t>(next - changes_.begin()), moment);
}

// Returns a moment after the first `changes`.
Nanos TimeShift::After(size_t changes, Nanos moment) const {
  if (changes == 0) return moment;
  const TimeChange& last = changes_[changes - 1];
  const Nanos cut = std::min(moment - last.at, Nanos{} - last.length);
  const Nanos change = last.length < Nanos{} ? Nanos{} - cut : last.length;
  return moment + before_[changes - 1] + change;
}

}  // namespace etude

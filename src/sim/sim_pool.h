#pragma once

#include <vector>

#include "src/sim/sim_input.h"

namespace etude {

// Values by number; numbers that are given back are given out again.
template <typename T>
class SimPool {
 public:
  SimIndex Add(const T& value) {
    if (unused_ == kNoIndex) {
      values_.push_back(value);
      next_unused_.push_back(kNoIndex);
      return static_cast<SimIndex>(values_.size() - 1);
    }
    const SimIndex index = unused_;
    unused_ = next_unused_[index];
    values_[index] = value;
    return index;
  }
  T Take(SimIndex index) {
    next_unused_[index] = unused_;
    unused_ = index;
    return values_[index];
  }
  // Until one is added.
  T& operator[](SimIndex index) { return values_[index]; }
  const T& operator[](SimIndex index) const { return values_[index]; }

 private:
  std::vector<T> values_;
  std::vector<SimIndex> next_unused_;  // after one that is unused
  SimIndex unused_ = kNoIndex;         // first
};

}  // namespace etude

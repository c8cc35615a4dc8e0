#pragma once

#include <vector>

#include "src/sim/engine/sim_input.h"

namespace etude {

// Values by number; numbers that are given back are given out again.
template <typename T>
class SimPool {
 public:
  SimIndex Add(const T& value) {
    if (unused_.empty()) {
      values_.push_back(value);
      return static_cast<SimIndex>(values_.size() - 1);
    }
    const SimIndex index = unused_.back();
    unused_.pop_back();
    values_[index] = value;
    return index;
  }
  T Take(SimIndex index) {
    unused_.push_back(index);
    return values_[index];
  }
  // Until one is added.
  T& operator[](SimIndex index) { return values_[index]; }
  const T& operator[](SimIndex index) const { return values_[index]; }

 private:
  std::vector<T> values_;
  std::vector<SimIndex> unused_;  // the last given back is the first to be given out
};

}  // namespace etude

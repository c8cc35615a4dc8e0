#pragma once

#include <vector>

#include "src/sim/engine/sim_input.h"

namespace etude {

// Values by number. Released numbers are reused.
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
  // The reference is valid until the next Add.
  T& operator[](SimIndex index) { return values_[index]; }
  const T& operator[](SimIndex index) const { return values_[index]; }

 private:
  std::vector<T> values_;
  std::vector<SimIndex> unused_;  // stack of released numbers
};

}  // namespace etude

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace etude {

// Time in which something ran, each instant once.
class BusyTime {
 public:
  // `end` is not before that of any so far.
  void Add(int64_t begin, int64_t end) {
    while (!spans_.empty() && spans_.back().first >= begin) spans_.pop_back();
    if (!spans_.empty() && spans_.back().second >= begin) {
      spans_.back().second = end;
    } else {
      spans_.emplace_back(begin, end);
    }
  }
  int64_t Total() const {
    int64_t total = 0;
    for (const auto& [begin, end] : spans_) total += end - begin;
    return total;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> spans_;  // ascending, apart
};

}  // namespace etude

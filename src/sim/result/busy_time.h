#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace etude {

// Union of time spans in ns.
class BusyTime {
 public:
  // Adds a span. `end` must not be before that of any earlier span.
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
  std::vector<std::pair<int64_t, int64_t>> spans_;  // ascending, disjoint
};

}  // namespace etude

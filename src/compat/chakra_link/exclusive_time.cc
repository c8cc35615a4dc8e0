#include "src/compat/chakra_link/exclusive_time.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>

namespace etude::compat {
namespace {

// Operations of one thread by (start, duration).
template <typename T>
struct Lane {
  std::vector<uint32_t> places;
  std::vector<T> starts;
  std::vector<T> ends;
  std::vector<T> durations;
};

// Finds the next operation with an early end, in logarithmic time.
template <typename T>
class EarlyEnds {
 public:
  explicit EarlyEnds(const std::vector<T>& ends)
      : size_(ends.size()), leaves_(std::bit_ceil(std::max<size_t>(1, ends.size()))) {
    earliest_.assign(2 * leaves_, ends[0]);
    for (size_t i = 0; i < leaves_; ++i) earliest_[leaves_ + i] = ends[std::min(i, size_ - 1)];
    for (size_t i = leaves_ - 1; i > 0; --i) {
      earliest_[i] = std::min(earliest_[2 * i], earliest_[2 * i + 1]);
    }
  }

  // Returns the first index from `from` on with an end not after `limit`, or the size.
  size_t Find(size_t from, const T& limit) const {
    if (from >= size_) return size_;
    size_t node = leaves_ + from;
    while (earliest_[node] > limit) {
      while (node % 2 == 1) node /= 2;  // right halves were already searched
      if (node == 0) return size_;
      ++node;
    }
    while (node < leaves_) {
      node *= 2;
      if (earliest_[node] > limit) ++node;
    }
    return std::min(node - leaves_, size_);
  }

 private:
  size_t size_;
  size_t leaves_;
  std::vector<T> earliest_;
};

// Returns, for each index, the next one with a later end: those between are nested.
template <typename T>
std::vector<uint32_t> FirstBeyond(const std::vector<T>& ends) {
  std::vector<uint32_t> beyond(ends.size());
  for (size_t i = ends.size(); i-- > 0;) {
    auto next = static_cast<uint32_t>(i + 1);
    while (next < ends.size() && !(ends[next] > ends[i])) next = beyond[next];
    beyond[i] = next;
  }
  return beyond;
}

// Subtracts a union of intervals, added by start, from a duration.
template <typename T>
class Remainder {
 public:
  explicit Remainder(const T& duration) : left_(duration) {}

  void Add(const T& start, const T& end) {
    if (open_ && start <= end_) {
      if (end > end_) end_ = end;
      return;
    }
    Close();
    open_ = true;
    start_ = start;
    end_ = end;
  }

  T Finish() {
    Close();
    return left_;
  }

 private:
  void Close() {
    if (open_) left_ = left_ - (end_ - start_);
  }

  T left_;
  T start_{};
  T end_{};
  bool open_ = false;
};

// Literal definition, needed for negative durations.
template <typename T>
T ExclusiveByDefinition(const Lane<T>& lane, size_t i) {
  Remainder<T> remainder(lane.durations[i]);
  for (size_t j = i + 1; j < lane.starts.size(); ++j) {
    if (lane.ends[j] <= lane.ends[i]) remainder.Add(lane.starts[j], lane.ends[j]);
    if (lane.ends[i] < lane.starts[j]) break;
  }
  return remainder.Finish();
}

template <typename T>
class LaneTimes {
 public:
  explicit LaneTimes(const Lane<T>& lane) : lane_(lane), beyond_(FirstBeyond(lane.ends)) {}

  T Exclusive(size_t i) {
    // Operations nested in a callee do not extend the union, so only outermost callees are visited.
    constexpr int kPatience = 16;
    Remainder<T> remainder(lane_.durations[i]);
    const T& end = lane_.ends[i];
    int passed = 0;
    size_t j = i + 1;
    while (j < lane_.starts.size() && lane_.starts[j] <= end) {
      if (lane_.ends[j] <= end) {
        remainder.Add(lane_.starts[j], lane_.ends[j]);
        j = beyond_[j];
        passed = 0;
      } else if (++passed < kPatience) {
        ++j;
      } else {
        if (!early_ends_) early_ends_ = std::make_unique<EarlyEnds<T>>(lane_.ends);
        j = early_ends_->Find(j + 1, end);
      }
    }
    return remainder.Finish();
  }

 private:
  const Lane<T>& lane_;
  std::vector<uint32_t> beyond_;
  std::unique_ptr<EarlyEnds<T>> early_ends_;  // made on demand
};

PyNumber ToPy(double value) { return PyNumber::Float(value); }
PyNumber ToPy(const PyNumber& value) { return value; }

template <typename T>
void FindInLane(const Lane<T>& lane, ExclusiveTimes& found) {
  const bool regular =
      std::ranges::none_of(lane.durations, [](const T& duration) { return duration < T{}; });
  LaneTimes<T> times(lane);
  for (size_t i = 0; i < lane.places.size(); ++i) {
    const T value = regular ? times.Exclusive(i) : ExclusiveByDefinition(lane, i);
    found.values[lane.places[i]] = ToPy(value);
    if (value < T{} && !found.negative_at) found.negative_at = lane.places[i];
  }
}

}  // namespace

ExclusiveTimes FindExclusiveTimes(const DeviceTrace& trace, const std::vector<uint32_t>& cpu_ops,
                                  const Groups& by_thread) {
  ExclusiveTimes found;
  found.values.resize(cpu_ops.size());
  const auto event = [&](uint32_t place) -> const DeviceEvent& {
    return trace.events[cpu_ops[place]];
  };
  for (size_t thread = 0; thread < by_thread.size(); ++thread) {
    std::vector<uint32_t> places(by_thread[thread].begin(), by_thread[thread].end());
    if (places.empty()) continue;
    const bool all_float = std::ranges::all_of(places, [&](uint32_t place) {
      return event(place).ts.is_float && event(place).dur.is_float;
    });
    // Already ordered by start; only equal starts need sorting.
    for (size_t i = 0; i < places.size();) {
      size_t end = i + 1;
      while (end < places.size() && event(places[end]).ts == event(places[i]).ts) ++end;
      if (end - i > 1) {
        std::stable_sort(places.begin() + static_cast<ptrdiff_t>(i),
                         places.begin() + static_cast<ptrdiff_t>(end),
                         [&](uint32_t a, uint32_t b) { return event(a).dur < event(b).dur; });
      }
      i = end;
    }
    const auto fill = [&](auto& lane, auto value_of) {
      for (const uint32_t place : places) {
        lane.starts.push_back(value_of(event(place).ts));
        lane.durations.push_back(value_of(event(place).dur));
        lane.ends.push_back(lane.starts.back() + lane.durations.back());
      }
      lane.places = places;
      FindInLane(lane, found);
    };
    if (all_float) {
      Lane<double> lane;
      fill(lane, [](const PyNumber& number) { return number.real; });
    } else {
      Lane<PyNumber> lane;
      fill(lane, [](const PyNumber& number) { return number; });
    }
  }
  return found;
}

}  // namespace etude::compat

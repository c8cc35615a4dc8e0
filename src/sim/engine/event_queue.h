#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace etude {

// Queue of events by time, first planned first for equal times. A radix heap (Ahuja et al. 1990):
// since no event is planned for the past, events are bucketed by the highest bit in which their
// time differs from now, and sorted further only when that bit's turn comes. Buckets are
// redistributed in order, so events of one time keep the order of planning.
template <typename Event>
class EventQueue {
 public:
  int64_t now() const { return static_cast<int64_t>(now_); }
  bool empty() const { return left_ == 0; }
  uint64_t count() const { return planned_; }

  // Adds an event. Requires `time` >= now().
  void Plan(int64_t time, const Event& event) {
    const auto at = static_cast<uint64_t>(time);
    const auto bucket = static_cast<size_t>(std::bit_width(at ^ now_));
    buckets_[bucket].push_back({.time = at, .event = event});
    filled_ |= uint64_t{1} << bucket;
    ++planned_;
    ++left_;
  }
  // Advances to the next event and returns it. Requires !empty().
  Event Take() {
    std::vector<Planned>& current = buckets_[0];
    if (taken_ == current.size()) {
      current.clear();
      taken_ = 0;
      Refill();
    }
    --left_;
    return current[taken_++].event;
  }

 private:
  struct Planned {
    uint64_t time = 0;
    Event event;
  };
  // Capacity that a bucket keeps after use, so that a few large buckets do not hold memory forever.
  static constexpr size_t kKept = 4096;

  void Refill() {
    filled_ &= ~uint64_t{1};
    const auto lowest = static_cast<size_t>(std::countr_zero(filled_));
    std::vector<Planned>& bucket = buckets_[lowest];
    filled_ &= ~(uint64_t{1} << lowest);
    now_ = bucket.front().time;
    bool all_now = true;
    for (const Planned& planned : bucket) {
      all_now = all_now && planned.time == now_;
      now_ = std::min(now_, planned.time);
    }
    if (all_now) return bucket.swap(buckets_[0]);
    for (const Planned& planned : bucket) {
      const auto lower = static_cast<size_t>(std::bit_width(planned.time ^ now_));
      buckets_[lower].push_back(planned);
      filled_ |= uint64_t{1} << lower;
    }
    bucket.clear();
    if (bucket.capacity() > kKept) bucket.shrink_to_fit();
  }

  std::array<std::vector<Planned>, 64>
      buckets_;          // by index of the highest bit that differs from now; 0: now
  uint64_t filled_ = 0;  // non-empty buckets, one bit each; bucket 0 may be used up
  size_t taken_ = 0;     // events taken from bucket 0
  uint64_t now_ = 0;
  uint64_t planned_ = 0;
  uint64_t left_ = 0;
};

}  // namespace etude

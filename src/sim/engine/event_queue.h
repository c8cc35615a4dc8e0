#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace etude {

// What happens next: by time, and at one time in the order in which it was planned. A radix heap
// (Ahuja et al. 1990): since nothing is planned for the past, what is to come is kept by the
// highest bit in which its time differs from now, and is sorted no further before that bit's turn.
// Events keep their order on their way down, so those of one time stay in the order of planning.
template <typename Event>
class EventQueue {
 public:
  int64_t now() const { return static_cast<int64_t>(now_); }
  bool empty() const { return left_ == 0; }
  uint64_t count() const { return planned_; }

  // `time` is not before now.
  void Plan(int64_t time, const Event& event) {
    const auto at = static_cast<uint64_t>(time);
    const auto bucket = static_cast<size_t>(std::bit_width(at ^ now_));
    buckets_[bucket].push_back({.time = at, .event = event});
    filled_ |= uint64_t{1} << bucket;
    ++planned_;
    ++left_;
  }
  // Goes to the time of the next event. There is one.
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
  // What is kept once it has been used, so that a few large buckets do not stay for ever.
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

  std::array<std::vector<Planned>, 64> buckets_;  // by the number of bits up to that; 0: now
  uint64_t filled_ = 0;                           // buckets, a bit each; that of now may be used up
  size_t taken_ = 0;                              // of those now
  uint64_t now_ = 0;
  uint64_t planned_ = 0;
  uint64_t left_ = 0;
};

}  // namespace etude

#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace etude {

// What happens next: by time, and at one time in the order in which it was planned.
template <typename Event>
class EventQueue {
 public:
  int64_t now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  uint64_t count() const { return planned_; }
  void Plan(int64_t time, const Event& event) {
    heap_.push({.time = time, .order = planned_++, .event = event});
  }
  // Goes to the time of the next event. There is one.
  Event Take() {
    const Planned next = heap_.top();
    heap_.pop();
    now_ = next.time;
    return next.event;
  }

 private:
  struct Planned {
    int64_t time = 0;
    uint64_t order = 0;
    Event event;

    friend bool operator<(const Planned& a, const Planned& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  std::priority_queue<Planned> heap_;
  int64_t now_ = 0;
  uint64_t planned_ = 0;
};

}  // namespace etude

#pragma once

#include "src/sim/engine/sim_pool.h"

namespace etude {

// Queues of values, of which most hold one or none: the first lies in the queue itself, those
// behind it in a pool that all queues have in common.
template <typename T>
class ShortQueues {
 public:
  class Queue {
   public:
    bool empty() const { return empty_; }

   private:
    friend class ShortQueues;
    T first_{};
    SimIndex last_ = kNoIndex;  // of those behind; kNoIndex: there are none
    bool empty_ = true;
  };

  void Push(Queue& queue, const T& value) {
    if (queue.empty_) {
      queue.first_ = value;
      queue.empty_ = false;
      return;
    }
    const SimIndex link = behind_.Add({.value = value, .next = kNoIndex});
    if (queue.last_ == kNoIndex) {
      behind_[link].next = link;
    } else {
      behind_[link].next = behind_[queue.last_].next;
      behind_[queue.last_].next = link;
    }
    queue.last_ = link;
  }
  // There is one.
  T Pop(Queue& queue) {
    const T value = queue.first_;
    if (queue.last_ == kNoIndex) {
      queue.empty_ = true;
      return value;
    }
    const SimIndex second = behind_[queue.last_].next;
    const Link link = behind_.Take(second);
    queue.first_ = link.value;
    if (second == queue.last_) {
      queue.last_ = kNoIndex;
    } else {
      behind_[queue.last_].next = link.next;
    }
    return value;
  }

 private:
  struct Link {
    T value;
    SimIndex next = kNoIndex;  // after the last: the first of those behind
  };

  SimPool<Link> behind_;
};

}  // namespace etude

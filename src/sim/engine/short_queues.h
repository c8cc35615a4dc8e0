#pragma once

#include "src/sim/engine/sim_pool.h"

namespace etude {

// FIFO queues that mostly hold zero or one value. The first value is stored in the queue itself,
// further ones in a pool shared by all queues.
template <typename T>
class ShortQueues {
 public:
  class Queue {
   public:
    bool empty() const { return empty_; }

   private:
    friend class ShortQueues;
    T first_{};
    SimIndex last_ = kNoIndex;  // last of the further values; kNoIndex: none
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
  // Removes and returns the first value. Requires a non-empty queue.
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
    SimIndex next = kNoIndex;  // next value; for the last one: the first of the further values
  };

  SimPool<Link> behind_;
};

}  // namespace etude

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/sim/engine/short_queues.h"
#include "src/sim/engine/sim_message.h"

namespace etude {

// Unexpected messages and waiting receivers, matched by key in FIFO order. A hash table with linear
// probing. Keys remain until the table is full, because most of them come again.
class Mailbox {
 public:
  Mailbox() : slots_(16) {}

  // Returns true if a message with this key had arrived; otherwise the receiver waits.
  bool Post(const MatchKey& key, const MessageReceiver& receiver) {
    Slot& slot = Find(key);
    if (slot.arrived > 0) {
      --slot.arrived;
      return true;
    }
    waiting_.Push(slot.waiting, receiver);
    return false;
  }
  // Returns the receiver that waits for this key; nullopt if there is none yet.
  std::optional<MessageReceiver> Deliver(const MatchKey& key) {
    Slot& slot = Find(key);
    if (slot.waiting.empty()) {
      ++slot.arrived;
      return std::nullopt;
    }
    return waiting_.Pop(slot.waiting);
  }
  uint64_t unreceived() const {
    uint64_t count = 0;
    for (const Slot& slot : slots_) count += slot.arrived;
    return count;
  }

 private:
  // State of one key: arrived messages, waiting receivers, or neither. One cache line.
  struct alignas(64) Slot {
    MatchKey key;
    ShortQueues<MessageReceiver>::Queue waiting;
    uint32_t arrived = 0;
    bool used = false;

    bool is_idle() const { return arrived == 0 && waiting.empty(); }
  };

  size_t HomeOf(const MatchKey& key) const { return HashOf(key) & (slots_.size() - 1); }
  size_t After(size_t index) const { return (index + 1) & (slots_.size() - 1); }

  Slot& Find(const MatchKey& key) {
    if (used_ * 8 > slots_.size() * 5) MakeRoom();
    size_t index = HomeOf(key);
    for (; slots_[index].used; index = After(index)) {
      if (slots_[index].key == key) return slots_[index];
    }
    ++used_;
    slots_[index].key = key;
    slots_[index].used = true;
    return slots_[index];
  }
  // Removes idle keys, or grows the table.
  void MakeRoom() {
    const auto idle = std::ranges::count_if(slots_, &Slot::is_idle);  // includes unused slots
    const bool is_full = static_cast<size_t>(idle) * 8 < slots_.size() * 5;
    std::vector<Slot> old(is_full ? slots_.size() * 2 : slots_.size());
    old.swap(slots_);
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.is_idle()) continue;
      size_t index = HomeOf(slot.key);
      while (slots_[index].used) index = After(index);
      slots_[index] = slot;
      ++used_;
    }
  }

  std::vector<Slot> slots_;  // size is a power of two
  size_t used_ = 0;
  ShortQueues<MessageReceiver> waiting_;
};

}  // namespace etude

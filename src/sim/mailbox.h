#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/sim/sim_message.h"
#include "src/sim/sim_pool.h"

namespace etude {

// Messages that nobody has asked for, and who waits for others, by key, first come first served. A
// hash table with linear probing; what is empty leaves it.
class Mailbox {
 public:
  Mailbox() : slots_(16) {}

  // True: a message with the key was there; else the receiver waits.
  bool Post(const MatchKey& key, const MessageReceiver& receiver) {
    Slot& slot = Find(key);
    if (slot.arrived > 0) {
      if (--slot.arrived == 0) Erase(slot);
      return true;
    }
    const SimIndex link = waiting_.Add({.receiver = receiver});
    if (slot.first == kNoIndex) {
      slot.first = link;
    } else {
      waiting_[slot.last].next = link;
    }
    slot.last = link;
    return false;
  }
  // Who waits for a message with the key; nullopt: nobody yet.
  std::optional<MessageReceiver> Deliver(const MatchKey& key) {
    Slot& slot = Find(key);
    if (slot.first == kNoIndex) {
      ++slot.arrived;
      return std::nullopt;
    }
    const Link link = waiting_.Take(slot.first);
    slot.first = link.next;
    if (slot.first == kNoIndex) Erase(slot);
    return link.receiver;
  }
  uint64_t unreceived() const {
    uint64_t count = 0;
    for (const Slot& slot : slots_) count += slot.arrived;
    return count;
  }

 private:
  struct Link {
    MessageReceiver receiver;
    SimIndex next = kNoIndex;
  };
  // Of one key: either messages have come or somebody waits; neither: the slot is free.
  struct Slot {
    MatchKey key;
    uint32_t arrived = 0;
    SimIndex first = kNoIndex;
    SimIndex last = kNoIndex;

    bool is_free() const { return arrived == 0 && first == kNoIndex; }
  };

  size_t HomeOf(const MatchKey& key) const { return HashOf(key) & (slots_.size() - 1); }
  size_t After(size_t index) const { return (index + 1) & (slots_.size() - 1); }

  // A new slot counts as used.
  Slot& Find(const MatchKey& key) {
    if (used_ * 4 > slots_.size() * 3) Grow();
    size_t index = HomeOf(key);
    while (!slots_[index].is_free()) {
      if (slots_[index].key == key) return slots_[index];
      index = After(index);
    }
    ++used_;
    slots_[index].key = key;
    return slots_[index];
  }
  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.is_free()) continue;
      size_t index = HomeOf(slot.key);
      while (!slots_[index].is_free()) index = After(index);
      slots_[index] = slot;
    }
  }
  // Those behind it that are away from home move up.
  void Erase(const Slot& slot) {
    auto hole = static_cast<size_t>(&slot - slots_.data());
    --used_;
    for (size_t index = After(hole); !slots_[index].is_free(); index = After(index)) {
      const size_t home = HomeOf(slots_[index].key);
      const size_t mask = slots_.size() - 1;
      if (((index - home) & mask) < ((index - hole) & mask)) continue;
      slots_[hole] = slots_[index];
      hole = index;
    }
    slots_[hole] = {};
  }

  std::vector<Slot> slots_;  // a power of two
  size_t used_ = 0;
  SimPool<Link> waiting_;
};

}  // namespace etude

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "src/sim/sim_message.h"

namespace etude {

// Messages that nobody has asked for, and who waits for others, by key, first come first served.
class Mailbox {
 public:
  // True: a message with the key was there; else the receiver waits.
  bool Post(const MatchKey& key, const MessageReceiver& receiver) {
    Match& match = matches_[key];
    if (match.arrived == 0) {
      match.waiting.push_back(receiver);
      return false;
    }
    if (--match.arrived == 0 && match.waiting.empty()) matches_.erase(key);
    return true;
  }
  // Who waits for a message with the key; nullopt: nobody yet.
  std::optional<MessageReceiver> Deliver(const MatchKey& key) {
    Match& match = matches_[key];
    if (match.waiting.empty()) {
      ++match.arrived;
      return std::nullopt;
    }
    const MessageReceiver receiver = match.waiting.front();
    match.waiting.pop_front();
    if (match.waiting.empty() && match.arrived == 0) matches_.erase(key);
    return receiver;
  }
  uint64_t unreceived() const {
    uint64_t count = 0;
    for (const auto& [key, match] : matches_) count += match.arrived;
    return count;
  }

 private:
  struct Hash {
    size_t operator()(const MatchKey& key) const { return HashOf(key); }
  };
  struct Match {
    uint64_t arrived = 0;  // that nobody has asked for
    std::deque<MessageReceiver> waiting;
  };

  std::unordered_map<MatchKey, Match, Hash> matches_;
};

}  // namespace etude

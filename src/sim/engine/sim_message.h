#pragma once

#include <cstdint>

#include "src/sim/engine/sim_input.h"

namespace etude {

// Who is told that a message is there.
struct MessageReceiver {
  enum class Kind : uint8_t {
    kNobody,
    kNode,
    kStream,
    kCustom,
    kPostReceive,
    kSend
  } kind = Kind::kNobody;
  RankClassId rank_class;
  SimIndex subject = 0;  // node or stream; what is held back for kPostReceive and kSend
  SimIndex node = 0;     // of a stream's program
};

// Between the first rank of `source` and a rank of `target`.
struct SimMessage {
  int64_t bytes = 0;
  int64_t tag = 0;
  int64_t ordinal = 0;
  RankClassId source;
  RankClassId target;
  int64_t from = 0;
  int64_t to = 0;
  MessageReceiver sender;  // told at the arrival, too
  SimIndex chain = kNoIndex;
};

// A message is for whom expects one with the same key.
struct MatchKey {
  int64_t tag = 0;
  int64_t bytes = 0;
  int64_t ordinal = 0;  // of classes, whose members are not told apart by source and target
  RankClassId source;
  RankClassId target;

  friend bool operator==(const MatchKey&, const MatchKey&) = default;
};

inline uint64_t HashOf(const MatchKey& key) {
  uint64_t hash = static_cast<uint64_t>(key.tag) * 0x9E3779B97F4A7C15ull;
  hash += static_cast<uint64_t>(key.ordinal) << 40;
  hash ^= (uint64_t{key.source.value()} << 32 | key.target.value()) + (hash >> 29);
  hash *= 0xBF58476D1CE4E5B9ull;
  hash ^= static_cast<uint64_t>(key.bytes) + (hash >> 32);
  hash *= 0x94D049BB133111EBull;
  return hash ^ (hash >> 31);
}

inline MatchKey KeyOf(const SimMessage& message) {
  return {.tag = message.tag,
          .bytes = message.bytes,
          .ordinal = message.ordinal,
          .source = message.source,
          .target = message.target};
}

// Added to a message's tag: of what a rendezvous says of it. Tags of collectives begin at
// kTagSpace.
inline constexpr int64_t kRendezvousTag = 1'000'000'000;

}  // namespace etude

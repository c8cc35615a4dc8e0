#pragma once

#include <cstdint>

#include "src/sim/engine/sim_input.h"

namespace etude {

// Receiver of an arrival notification.
struct MessageReceiver {
  enum class Kind : uint8_t {
    kNobody,
    kNode,
    kStream,
    kCustom,
    kPostReceive,
    kSend,
    kMembers,  // of a collective in the network
    kPlan      // of a collective with a plan
  } kind = Kind::kNobody;
  RankClassId rank_class;
  SimIndex subject = 0;  // node, stream, or index in SimMessages::posted_ or held_,
                         // SimCollectives::joined_, or action of PlanRuns
  SimIndex node = 0;     // in the stream's program
};

// A message from the first rank of `source` to a rank of `target`.
struct SimMessage {
  int64_t bytes = 0;
  int64_t tag = 0;
  int64_t ordinal = 0;
  RankClassId source;
  RankClassId target;
  int64_t from = 0;
  int64_t to = 0;
  MessageReceiver sender;  // also notified at arrival
  SimIndex chain = kNoIndex;
};

// Key by which a message is matched with a receive.
struct MatchKey {
  int64_t tag = 0;
  int64_t bytes = 0;
  int64_t ordinal = 0;  // with classes, distinguishes members that have equal source and target
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

// Offset that is added to the tag for a message's rendezvous control message. Tags of collectives
// begin at kTagSpace.
inline constexpr int64_t kRendezvousTag = 1'000'000'000;

}  // namespace etude

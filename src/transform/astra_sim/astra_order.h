#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/transform/astra_sim/astra_notes.h"
#include "src/transform/astra_sim/astra_rank.h"

namespace etude {

// What becomes of a node of an AstraRank.
struct AstraPlan {
  enum class What : uint8_t { kRuns, kReplayed, kLeftOut };
  static constexpr uint32_t kNone = UINT32_MAX;

  What what = What::kRuns;
  std::optional<AstraNote> why;  // if it does not run
  uint32_t match = kNone;        // equal on all sides of one communication; kNone: it has no others
  int64_t group = 0;             // of collectives: an id, 0: all ranks
  std::optional<int64_t> root;   // of collectives that have one: place in the group
  int64_t peer = 0;              // of sends and receives
  int64_t tag = 0;               // of sends and receives
  int64_t size = 0;              // bytes

  void LeaveOut(AstraNote note) { what = What::kLeftOut, why = note; }
  void Replay(AstraNote note) { what = What::kReplayed, why = note; }
};

struct AstraOrder {
  // By rank: its nodes that communicate, but receives, in the order in which they must.
  std::vector<std::vector<uint32_t>> slots;
  // The first of those that would have waited for themselves, in words; "": none would have. Their
  // plans say so now.
  std::string first_cut;
};

// ASTRA-sim lets a rank communicate once at a time (receives are free), and a collective holds the
// rank until all others are there. Finds one order for the whole job: communication whose ranks are
// all ready, of these what comes first in the traces. Where none is, some communication waits for
// itself, and the first is replayed or left out.
AstraOrder OrderCommunication(const std::vector<AstraRank>& ranks,
                              std::vector<std::vector<AstraPlan>>& plans);

}  // namespace etude

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/transform/astra_sim/astra_notes.h"
#include "src/transform/astra_sim/astra_rank.h"

namespace etude {

// Plan for a node of an AstraRank.
struct AstraPlan {
  enum class What : uint8_t { kRuns, kReplayed, kLeftOut };
  static constexpr uint32_t kNone = UINT32_MAX;

  What what = What::kRuns;
  std::optional<AstraNote> why;  // if it does not run
  uint32_t match = kNone;        // equal on all sides of one communication; kNone: no other sides
  int64_t group = 0;             // of collectives: an id, 0: all ranks
  std::optional<int64_t> root;   // of rooted collectives: index in the group
  int64_t peer = 0;              // of sends and receives
  int64_t tag = 0;               // of sends and receives
  int64_t size = 0;              // in bytes

  void LeaveOut(AstraNote note) { what = What::kLeftOut, why = note; }
  void Replay(AstraNote note) { what = What::kReplayed, why = note; }
};

struct AstraOrder {
  // By rank: its communication nodes except receives, in their required order.
  std::vector<std::vector<uint32_t>> slots;
  // Description of the first communication removed to prevent a deadlock; "": none. Its plan is
  // changed accordingly.
  std::string first_cut;
};

// Finds one communication order for the whole job. ASTRA-sim lets a rank communicate once at a time
// (receives excepted), and a collective blocks the rank until all others have joined. Takes
// communications whose ranks are all ready, the first in the traces first. If there is none, some
// communication waits for itself, and the first is replayed or left out.
AstraOrder OrderCommunication(const std::vector<AstraRank>& ranks,
                              std::vector<std::vector<AstraPlan>>& plans);

}  // namespace etude

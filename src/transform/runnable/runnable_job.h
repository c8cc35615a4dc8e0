#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/transform/runnable/runnable_notes.h"
#include "src/transform/runnable/runnable_rank.h"

// What simulators run of a job, whatever else they are: nodes of all ranks with their times,
// dependencies and gaps, and who communicates with whom. The limits of one simulator are imposed on
// it afterwards (astra_sim/for_astra_sim.h).
namespace etude {

// What becomes of a node of a RunnableRank.
struct RunnablePlan {
  enum class What : uint8_t { kRuns, kReplayed, kLeftOut };
  static constexpr uint32_t kNone = UINT32_MAX;

  What what = What::kRuns;
  bool raised = false;              // the size is that of another side
  std::optional<RunnableNote> why;  // if it does not run
  uint32_t match = kNone;       // equal on all sides of one communication; kNone: it has no others
  int64_t group = 0;            // of collectives: an id, 0: all ranks
  std::optional<int64_t> root;  // of collectives that have one: place in the group
  int64_t peer = 0;             // of sends and receives
  int64_t tag = 0;              // of sends and receives: one for each message between two ranks
  int64_t size = 0;             // bytes; 0 of barriers

  void LeaveOut(RunnableNote note) { what = What::kLeftOut, why = note; }
  void Replay(RunnableNote note) { what = What::kReplayed, why = note; }
};

struct RunnableJobOptions {
  // A rank without a trace does what the nearest one with a trace does.
  bool fill_ranks = false;
  // Ranks of the job, where the traces speak of none or one; 0: not given.
  int64_t ranks = 0;
};

// A job whose ranks fit together.
struct RunnableJob {
  std::vector<RunnableRank> ranks;               // ascending
  std::vector<std::vector<RunnablePlan>> plans;  // by rank and node
  // Of some of the ranks, in which collectives run: by id, the number in the name if it has one for
  // itself.
  std::map<int64_t, std::vector<int64_t>> groups;
  uint64_t renamed_groups = 0;  // have another id than the number in their name
  int64_t world_size = 0;
  bool world_known = false;           // otherwise there may be more ranks than that
  std::vector<int64_t> missing;       // ranks of the job without a trace
  RunnableNotes notes;                // of ranks; the plans say the rest
  std::vector<std::string> messages;  // the first of each kind of disagreement between ranks
};

// Fits the ranks of a job together: collectives that all ranks of their group have in the same
// place, sends with their receives, all of one size. The size of an all-gather is what each rank
// puts in, of other collectives the whole buffer that a rank puts in.
//
// kBadInput for two traces of one rank, or one of unknown rank among several; if ranks to be filled
// in are not all alike; if the traces speak of another number of ranks than given.
Result<RunnableJob> MakeRunnableJob(std::vector<RunnableRank> ranks,
                                    const RunnableJobOptions& options);

}  // namespace etude

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/transform/runnable/runnable_notes.h"
#include "src/transform/runnable/runnable_rank.h"

// A job in the form that any simulator runs: the nodes of all ranks with their times, dependencies
// and gaps, and the partners of communications. The limits of one simulator are imposed afterwards
// (astra_sim/for_astra_sim.h).
namespace etude {

// How a node of a RunnableRank is run.
struct RunnablePlan {
  enum class What : uint8_t { kRuns, kReplayed, kLeftOut };
  static constexpr uint32_t kNone = UINT32_MAX;

  What what = What::kRuns;
  bool raised = false;              // whether the size is that of another side
  std::optional<RunnableNote> why;  // reason if it does not run
  uint32_t match = kNone;       // equal on all sides of a communication; kNone if it has no others
  int64_t group = 0;            // for collectives: an id, 0: all ranks
  std::optional<int64_t> root;  // place in the group, for collectives that have a root
  int64_t peer = 0;             // for sends and receives
  int64_t tag = 0;   // for sends and receives: a separate one for each message between two ranks
  int64_t size = 0;  // bytes; 0 for barriers

  void LeaveOut(RunnableNote note) { what = What::kLeftOut, why = note; }
  void Replay(RunnableNote note) { what = What::kReplayed, why = note; }
};

struct RunnableJobOptions {
  // Whether a rank without a trace does the same as the nearest rank with a trace.
  bool fill_ranks = false;
  // With fill_ranks and one trace: makes this rank only, which all ranks of the job equal.
  bool one_for_all = false;
  // Number of ranks of the job, if the traces give none or one; 0: not given.
  int64_t ranks = 0;
};

// A job whose ranks fit together.
struct RunnableJob {
  std::vector<RunnableRank> ranks;               // ascending
  std::vector<std::vector<RunnablePlan>> plans;  // by rank and node
  // Groups that do not contain all ranks and in which collectives run, by id. The id is the number
  // in the name if no other group has it.
  std::map<int64_t, std::vector<int64_t>> groups;
  uint64_t renamed_groups = 0;  // whose id differs from the number in their name
  int64_t world_size = 0;
  bool world_known = false;           // otherwise there may be more ranks than that
  std::vector<int64_t> missing;       // ranks of the job without a trace
  RunnableNotes notes;                // for ranks; the plans contain the rest
  std::vector<std::string> messages;  // the first of each kind of disagreement between ranks
};

// Adds the missing ranks of a job of `world_size` ranks: each does the same as the nearest one that
// is present. `ranks` must be ascending, not empty and without duplicates, and stay ascending.
// kBadInput if they are not all alike.
Status FillRanks(int64_t world_size, std::vector<RunnableRank>& ranks);

// Fits the ranks of a job together: collectives that all ranks of their group have in the same
// place, and sends with their receives. All sides get one size. The size of an all-gather is the
// input of each rank, and that of other collectives the whole buffer that a rank puts in.
//
// Returns kBadInput for two traces of one rank, or one of unknown rank among several; if ranks to
// be filled in are not all alike; and if the traces give another number of ranks than the options.
Result<RunnableJob> MakeRunnableJob(std::vector<RunnableRank> ranks,
                                    const RunnableJobOptions& options);

}  // namespace etude

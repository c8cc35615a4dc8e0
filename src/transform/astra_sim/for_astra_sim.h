#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/astra_sim/astra_rank.h"

namespace etude {

struct ForAstraSimOptions {
  AstraCompute compute = AstraCompute::kDurations;
  // A rank without a trace does what the nearest one with a trace does.
  bool fill_ranks = false;
  // What is left of traces without device work stays on the threads of a host that computes
  // (HostComputes): "host", "host 2" …; communication beside them.
  bool host_threads = false;
  // For a simulator that knows all types of collectives: those with a root stay what they are. What
  // is replayed has the type kUnknown.
  bool all_types = false;
  // Ranks of the job, where the traces speak of none or one; 0: not given.
  int64_t ranks = 0;
};

// One rank's part of a job for ASTRA-sim.
struct AstraRankReport {
  int64_t rank = 0;
  std::optional<int64_t> copy_of;
  uint64_t compute = 0;  // nodes
  uint64_t collectives = 0;
  uint64_t sends = 0;
  uint64_t recvs = 0;
  Nanos compute_time;  // of all compute nodes together
  Bytes comm_bytes;    // of all communication nodes together
  Nanos host_time;     // own time of host nodes that were left out
};

// A job that ASTRA-sim (518bd51) runs to its end: docs/models/astra_sim.md.
struct AstraJob {
  std::vector<Trace> traces;  // by rank, to be written as they are
  std::vector<AstraRankReport> ranks;
  std::map<int64_t, std::vector<int64_t>> groups;  // by id, as ASTRA-sim's group file has them
  int64_t world_size = 0;
  bool world_known = false;      // otherwise there may be more ranks than that
  std::vector<int64_t> missing;  // ranks of the job without a trace: ASTRA-sim does not start
  AstraNotes notes;
  std::vector<std::string> messages;  // the first of each kind of disagreement between ranks
};

// Fits the ranks of a job together: collectives that all ranks of their group have in the same
// place, sends with their receives, all of one size, in an order in which no rank waits for one
// that waits for it although ASTRA-sim communicates once at a time.
//
// kBadInput for two traces of one rank, or one of unknown rank among several; if ranks to be filled
// in are not all alike; if the traces speak of another number of ranks than given.
Result<AstraJob> ForAstraSim(std::vector<AstraRank> ranks, const ForAstraSimOptions& options);

}  // namespace etude

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
  // A rank without a trace copies the nearest one with a trace.
  bool fill_ranks = false;
  // Nodes of traces without device work stay on the threads of a computing host (HostComputes):
  // "host", "host 2" …; communication is on separate ones.
  bool host_threads = false;
  // For a simulator with all types of collectives: rooted ones keep their type. Replayed ones have
  // the type kUnknown.
  bool all_types = false;
  // Ranks of the job, if the traces mention at most one; 0: not given.
  int64_t ranks = 0;
};

// One rank's part of a job for ASTRA-sim.
struct AstraRankReport {
  int64_t rank = 0;
  std::optional<int64_t> copy_of;
  uint64_t compute = 0;  // number of nodes
  uint64_t collectives = 0;
  uint64_t sends = 0;
  uint64_t recvs = 0;
  Nanos compute_time;  // total of compute nodes
  Bytes comm_bytes;    // total of communication nodes
  Nanos host_time;     // own time of host nodes that were left out
};

// A job that ASTRA-sim (518bd51) can run to its end: docs/models/astra_sim.md.
struct AstraJob {
  std::vector<Trace> traces;  // by rank, to be written verbatim
  std::vector<AstraRankReport> ranks;
  std::map<int64_t, std::vector<int64_t>> groups;  // by id, as in ASTRA-sim's group file
  int64_t world_size = 0;
  bool world_known = false;      // otherwise there may be more ranks
  std::vector<int64_t> missing;  // ranks of the job without a trace: ASTRA-sim does not start
  AstraNotes notes;
  std::vector<std::string> messages;  // the first of each kind of disagreement between ranks
};

// Combines the ranks of a job: collectives with all ranks of their group in the same position,
// sends with their receives, all of one size, in an order without deadlock although ASTRA-sim
// communicates once at a time.
//
// kBadInput for two traces of one rank, for one of unknown rank among several, if ranks to be
// copied are not all alike, or if the traces mention another number of ranks than given.
Result<AstraJob> ForAstraSim(std::vector<AstraRank> ranks, const ForAstraSimOptions& options);

}  // namespace etude

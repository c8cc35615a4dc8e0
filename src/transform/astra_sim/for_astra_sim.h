#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/runnable/runnable_job.h"

namespace etude {

struct ForAstraSimOptions {
  RunnableCompute compute = RunnableCompute::kDurations;
  // Whether the remaining nodes of traces without device work stay on the threads of a host that
  // computes (HostComputes), "host", "host 2" …, with separate communication.
  bool host_threads = false;
  // For a simulator with all types of collectives: rooted ones and barriers keep their type.
  // Replayed ones have the type kUnknown.
  bool all_types = false;
  // Gives communications that run RunnableNode::transfer as duration.
  bool transfers = false;
};

// One rank's part of a job for ASTRA-sim.
struct AstraRankReport {
  int64_t rank = 0;
  std::optional<int64_t> copy_of;
  bool on_device = false;  // made of device work
  uint64_t compute = 0;    // number of nodes
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
  RunnableNotes notes;
  std::vector<std::string> messages;  // the first of each kind of disagreement between ranks
};

// Imposes the limits of ASTRA-sim on a job, the last step before it is written: no collectives with
// a root, no all-gathers of fewer bytes than chunks, barriers as all-reduces, whole microseconds,
// and an order in which no rank waits for one that waits for it although ASTRA-sim communicates
// once at a time.
Result<AstraJob> ForAstraSim(RunnableJob job, const ForAstraSimOptions& options);

}  // namespace etude

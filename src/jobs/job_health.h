#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"
#include "src/formats/job/capture_folder.h"
#include "src/run/calls/comm_log.h"
#include "src/run/rank_run.h"
#include "src/transform/read_job.h"

namespace etude {

// The uses of one of a rank's traces in its job, besides its verdict.
struct TraceUse {
  bool is_richest = true;  // for the communications (RichestInput); else only without that one
  bool is_timed = true;    // for the time by the graph (TimedInput)
};
// Returns the uses of one of AllInputs(rank).
TraceUse UseOf(const RankInput& input, const CaptureRank& rank);

// Collects the facts of a folder's traces for the job as a whole: their verdicts, and how the
// communications of the ranks fit together.
class JobHealth {
 public:
  // Adds one of the traces of a rank, with its verdict.
  void Add(const Health& health, RankRun run, TraceUse use = {});

  // Returns whether there is a job to assess: at least two ranks, or one whose other ranks are
  // missing.
  bool is_job() const;
  // Matches the communications and assesses the job. Call it after all traces are added.
  Health Judge();
  bool communications_fit() const { return match_.unmatched == 0; }

  // Returns the details of `Judge`, after it: collectives, unmatched calls, clocks.
  nlohmann::ordered_json Json() const;
  std::string Text() const;

 private:
  std::map<int64_t, CommLog> logs_;
  std::vector<RankRun> runs_;                 // ranks whose graph explains a time
  std::optional<WaitCounts> waits_;           // sum over the ranks
  std::optional<GraphTime> last_graph_time_;  // of the last of them alone
  Health parts_;
  Health health_;
  CommMatch match_;
};

}  // namespace etude

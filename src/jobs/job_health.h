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

// What one of the traces of a rank counts for in its job, besides its verdict.
struct TraceUse {
  bool is_richest = true;  // for the communications (RichestInput); else only without that one
  bool is_timed = true;    // for the time by the graph (TimedInput)
};
// Of one of AllInputs(rank).
TraceUse UseOf(const RankInput& input, const CaptureRank& rank);

// Collects what the traces of a folder say of the job as a whole: their verdicts, and how the
// communications of the ranks fit together.
class JobHealth {
 public:
  // One of the traces of a rank, with the verdict on it.
  void Add(const Health& health, RankRun run, TraceUse use = {});

  // Whether there is a job to judge: two ranks at least, or one of which others are missing.
  bool is_job() const;
  // Matches the communications and judges. Call it when all is added.
  Health Judge();
  bool communications_fit() const { return match_.unmatched == 0; }

  // The matter of `Judge`, after it: collectives, unmatched calls, clocks.
  nlohmann::ordered_json Json() const;
  std::string Text() const;

 private:
  std::map<int64_t, CommLog> logs_;
  std::vector<RankRun> runs_;                 // of ranks whose graph explains a time
  std::optional<WaitCounts> waits_;           // of the ranks together
  std::optional<GraphTime> last_graph_time_;  // of the last of them by itself
  Health parts_;
  Health health_;
  CommMatch match_;
};

}  // namespace etude

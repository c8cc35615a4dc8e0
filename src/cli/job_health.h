#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "src/analysis/comm_log.h"
#include "src/analysis/health.h"
#include "src/trace/trace.h"

namespace etude {

// Collects what the traces of a folder say of the job as a whole: their verdicts, and how the
// communications of the ranks fit together.
class JobHealth {
 public:
  // One of the traces of `rank`; for the communications the one that tells most counts.
  void Add(int64_t rank, const Trace& trace);
  void Add(int64_t rank, const Health& health, CommLog log);

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
  Health parts_;
  Health health_;
  CommMatch match_;
};

}  // namespace etude

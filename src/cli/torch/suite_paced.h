#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/results/run_record.h"
#include "src/suite/run.h"

namespace etude {

// Request of `etude compare --run` to run a program step by step, in the environment that it gives
// to the program (src/cli/record/paced_program.h; python/etude/recording/pacing.py answers it in
// Python programs).
struct PaceRequest {
  std::string socket;   // path at which `etude compare` listens
  std::string capture;  // capture folder with the recorded step
  int64_t warmup = 1;   // steps before the first requested one
};
// Returns the request in this process's environment; nullopt if there is none.
std::optional<PaceRequest> FindPaceRequest();

// Connects to `etude compare`, warms up, and runs steps on request until the other end closes the
// connection or ends the program. Returns at once if the recorded step is another one.
// kUnavailable if nobody listens.
Status ServePace(const PaceRequest& request, int64_t rank, const suite::RunRecord& record,
                 const suite::TimedStep& step, const RunContext& context);

}  // namespace etude

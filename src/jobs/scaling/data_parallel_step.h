#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/jobs/machine_options.h"
#include "src/sim/machine/machine.h"

// Steps recorded on one rank, simulated as data-parallel ranks: what `etude whatif --dp` and `etude
// simulate` do, for several numbers of ranks. Defined in docs/models/what_if.md.
namespace etude {

struct DataParallelOptions {
  std::string job;     // path of the recording
  std::string bucket;  // size of gradient buckets: WhatIfOptions::bucket
  // Machine of N ranks; "(N)" in the network is the size of a dimension with which the
  // network has as many NPUs as ranks.
  MachineOptions machine;
  bool with_recording = false;  // times keep the cost of recording
};

// A simulated step.
struct DataParallelStep {
  int64_t ranks = 0;
  SimMachine machine;
  std::optional<Nanos> recorded_step;  // as in SimJob
  std::optional<Nanos> program_step;
  Nanos recording_taken;
  Nanos step;               // until the end of the last rank
  Nanos computation;        // of the rank with least, with copies between gradients and buckets
  Nanos communication;      // of the mean rank, overlaps counted once
  Nanos exposed;            // part of it during which the rank computes nothing
  int64_t all_reduces = 0;  // of each rank
  Bytes gradients;          // reduced by each rank
  std::vector<std::string> notes;
};

// Checks the options before any work. kUsage for those of the wrong form, and for a machine of
// another number of ranks.
Status CheckDataParallel(const DataParallelOptions& options, int64_t ranks, bool strict,
                         const RunContext& context);

// Simulates the recorded step as it is, on one rank. kBadInput for a recording with communication.
Result<DataParallelStep> SimulateOneRank(const DataParallelOptions& options, bool strict,
                                         const RunContext& context);

// Simulates the step of `ranks` data-parallel ranks, each with the recorded batch. kBadInput, with
// the reason, for steps that have no gradients. kInterrupted if the context is.
Result<DataParallelStep> SimulateDataParallel(const DataParallelOptions& options, int64_t ranks,
                                              bool strict, const RunContext& context);

}  // namespace etude

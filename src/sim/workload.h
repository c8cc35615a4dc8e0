#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/read_trace.h"
#include "src/sim/sim_program.h"
#include "src/sim/simulator.h"

namespace etude {

// The programs of all ranks. Ranks whose files are the same share one.
struct SimWorkload {
  std::vector<std::shared_ptr<const SimProgram>> programs;  // by rank
  RankGroups groups;                                        // by the number that nodes state

  std::vector<const SimProgram*> all() const;
};

// PREFIX.0.et to PREFIX.N.et for `ranks` ranks. kIo for one that cannot be read, kBadInput for one
// that is no trace.
Result<SimWorkload> ReadSimFiles(const std::string& prefix, int64_t ranks,
                                 const ReadOptions& options, const RunContext& context);

// ASTRA-sim's file of communicator groups, {"1": [0, 1], …}.
Result<RankGroups> ParseRankGroups(const std::string& text, const std::string& path, int64_t ranks);

// "rank 3: node 12 'all_reduce' …": what a rank that is not finished stands at.
std::string WhatIsWaitedFor(const SimResult& result, const SimWorkload& workload, int64_t rank);

}  // namespace etude

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/sim_job.h"
#include "src/report/tables/sim_memory_table.h"
#include "src/report/tables/sim_path_tables.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// The simulated job as a job: its traces with the times of the simulation.
struct SimulatedFilesOptions {
  std::string folder;  // "": none
  std::string to = "et";

  friend bool operator==(const SimulatedFilesOptions&, const SimulatedFilesOptions&) = default;

  // Before anything is read: kUsage for the folder of the job, and one that has other traces.
  Status Check(const SimJobOptions& job, const RunContext& context) const;
  // Before it is simulated: kUsage if it cannot be written so.
  Status CheckJob(const SimJob& job) const;
};

// What was written, a line each; none if nothing is asked for.
Result<std::vector<std::string>> WriteSimulatedFiles(const SimulatedFilesOptions& options,
                                                     const SimJob& job, const SimResult& result,
                                                     bool strict, const RunContext& context);

// Names of nodes. Of PREFIX.0.et … files of the ranks that are asked for are read once more; the
// job and the context must outlive the result.
SimNodeNames NamesOfSimJob(const SimJob& job, bool strict, const RunContext& context);

// The memory of each class of ranks, as far as traces say something of it.
Result<std::vector<SimMemoryRow>> MemoryOfSimJob(const SimJob& job, const SimResult& result,
                                                 bool strict, const RunContext& context);

}  // namespace etude

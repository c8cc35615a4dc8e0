#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/sim_job.h"
#include "src/report/tables/simulated/sim_memory_table.h"
#include "src/report/tables/simulated/sim_path_tables.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// Options for writing the simulated job as a job: its traces with the times of the simulation.
struct SimulatedFilesOptions {
  std::string folder;  // "": none
  std::string to = "et";

  friend bool operator==(const SimulatedFilesOptions&, const SimulatedFilesOptions&) = default;

  // Checks before anything is read. Returns kUsage for the folder of the job, and for one with
  // other traces.
  Status Check(const SimJobOptions& job, const RunContext& context) const;
  // Checks before the simulation. Returns kUsage if the job cannot be written in this form.
  Status CheckJob(const SimJob& job) const;
};

// Writes the files. Returns one line for each, and none if nothing is requested.
Result<std::vector<std::string>> WriteSimulatedFiles(const SimulatedFilesOptions& options,
                                                     const SimJob& job, const SimResult& result,
                                                     bool strict, const RunContext& context);

// Returns the names of nodes. For PREFIX.0.et … it reads the files of the requested ranks again.
// The job and the context must outlive the result.
SimNodeNames NamesOfSimJob(const SimJob& job, bool strict, const RunContext& context);

// Returns the memory of each class of ranks, if traces contain it.
Result<std::vector<SimMemoryRow>> MemoryOfSimJob(const SimJob& job, const SimResult& result,
                                                 bool strict, const RunContext& context);

}  // namespace etude

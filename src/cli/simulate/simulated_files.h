#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/cli/app/options.h"
#include "src/cli/simulate/sim_job.h"
#include "src/report/tables/sim_memory_table.h"
#include "src/report/tables/sim_path_tables.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// The simulated job as a job: its traces with the times of the simulation. Must outlive parsing.
struct SimulatedFilesOptions {
  std::string folder;  // "": none
  std::string to = "et";

  friend bool operator==(const SimulatedFilesOptions&, const SimulatedFilesOptions&) = default;

  void Declare(Options& options);
  // Before anything is read: kUsage for the folder of the job, and one that has other traces.
  Status Check(const SimJobOptions& job, const Console& console) const;
  // Before it is simulated: kUsage if it cannot be written so.
  Status CheckJob(const SimJob& job) const;
};

// What was written, a line each; none if nothing is asked for.
Result<std::vector<std::string>> WriteSimulatedFiles(const SimulatedFilesOptions& options,
                                                     const SimJob& job, const SimResult& result,
                                                     const Console& console);

// Names of nodes. Of PREFIX.0.et … files of the ranks that are asked for are read once more; the
// job and the console must outlive the result.
SimNodeNames NamesOfSimJob(const SimJob& job, const Console& console);

// The memory of each class of ranks, as far as traces say something of it.
Result<std::vector<SimMemoryRow>> MemoryOfSimJob(const SimJob& job, const SimResult& result,
                                                 const Console& console);

}  // namespace etude

#pragma once

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/job/job.h"
#include "src/trace/trace.h"

namespace etude {

// `trace`, of which `program` was made, with the times that a rank had in a simulation: every node
// that ended has its begin and how long it took; the others have neither. Lanes are those of the
// machine: a thread of the host, and streams for computation (0), collectives and sends (1), memory
// (2) and receives (from 3 on, as many as wait at once). Where the host computes (HostComputes) its
// threads stay, and there are threads for the others.
Result<Trace> SimulatedTrace(const Trace& trace, const SimProgram& program,
                             const SimRankResult& result, const Limits& limits = {});

// The same of all ranks of a job, of which `workload` was made (WorkloadOfJob). Classes whose ranks
// were simulated differently are several.
Result<Job> SimulatedJob(const Job& job, const SimWorkload& workload, const SimResult& result,
                         const Limits& limits = {});

}  // namespace etude

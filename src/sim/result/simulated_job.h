#pragma once

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/job/job.h"
#include "src/trace/trace.h"

namespace etude {

// Returns a copy of `trace`, from which `program` was made, with the simulated times of a rank.
// Nodes that did not end have neither begin nor duration. Lanes are those of the machine: a host
// thread, and streams for computation (0), collectives and sends (1), memory (2) and receives (3
// and up, as many as wait at once). If the host computes (HostComputes), its threads are kept and
// the others are additional threads.
Result<Trace> SimulatedTrace(const Trace& trace, const SimProgram& program,
                             const SimRankResult& result, const Limits& limits = {});

// Returns the job, from which `workload` was made (WorkloadOfJob), with the simulated times of all
// ranks. Classes whose ranks have different times are split.
Result<Job> SimulatedJob(const Job& job, const SimWorkload& workload, const SimResult& result,
                         const Limits& limits = {});

}  // namespace etude

#pragma once

// Simulation of a job on a machine, and generated communication patterns.

#include "src/jobs/machine_options.h"      // IWYU pragma: export
#include "src/jobs/sim_job.h"              // IWYU pragma: export
#include "src/jobs/simulated_step.h"       // IWYU pragma: export
#include "src/jobs/sweep/sweep.h"          // IWYU pragma: export
#include "src/sim/engine/simulator.h"      // IWYU pragma: export
#include "src/synth/pattern/microbench.h"  // IWYU pragma: export

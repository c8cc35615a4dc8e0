#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/what_if.h"

namespace etude {

// Makes the measurer of a job's operators, which refers to the console.
using MakeOperatorMeasurer = Result<OperatorMeasurer>(const SimJobOptions&, const Console&);

// Makes `etude whatif` for the program with libtorch, which supports --measure.
std::unique_ptr<Command> MakeMeasuringWhatIfCommand(MakeOperatorMeasurer* measurer);

}  // namespace etude

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/torch/step_gate.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"
#include "src/transform/operators/operator_table.h"

// Measurement of operators by the replay of the steps that contain them.
namespace etude {

// Returns this machine, for tables of operators on the CPU.
OperatorMachine OperatorMachineNow(int64_t threads, bool in_step, int64_t at_once = 1);

// Returns the table in a file of this machine, or an empty one if there is no such file or `path`
// is "". kBadInput for a table of another machine.
Result<OperatorTable> OpenOperatorTable(const std::string& path, const OperatorMachine& machine,
                                        const RunContext& context);

// A recorded step to be replayed. The trace is not owned.
struct StepToMeasure {
  const Trace* trace = nullptr;
  ReplayOptions options;
};

// New times, and why operators could not be measured.
struct OperatorsMeasured {
  std::map<OperatorKey, MeasuredCall> times;
  std::map<OperatorKey, std::string> failures;
};

// Measures the operators of the steps for which `wanted` returns true, on the CPU. The steps take
// turns, at most `most_rounds` times. With a `gate`, processes measure the same steps at the same
// time, until the lead is done. kUnavailable for steps on another device.
Result<OperatorsMeasured> MeasureOperators(const std::vector<StepToMeasure>& steps, bool in_step,
                                           int64_t most_rounds,
                                           const std::function<bool(const OperatorKey&)>& wanted,
                                           const RunContext& context, StepGate* gate = nullptr);

}  // namespace etude

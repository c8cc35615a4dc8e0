#pragma once

#include <vector>

#include "src/replay/values/fill_rule.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// An operator argument with restricted values that is computed in the step. With random inputs the
// computed values would differ from the recorded ones.
struct DemandedValues {
  NodeId node;
  StorageVersion version;
  TensorId tensor;
  bool decides_size = false;  // the size of the operator's result depends on the values
};

struct ValueRules {
  std::vector<FillRule> of_versions;     // by storage version
  std::vector<DemandedValues> demanded;  // integers and bools, in order of entry
};

// Infers for each storage version of the step how to fill it, if it has to be made. Demands on an
// argument are traced back through views and operators that only move values (copies, cat, gather,
// …) to the origin of the values. Demands for offsets also pass through running sums of lengths,
// and those for roots through arithmetic that keeps the sign.
ValueRules InferFillRules(const RecordedStep& step, const DataFlow& flow);

}  // namespace etude

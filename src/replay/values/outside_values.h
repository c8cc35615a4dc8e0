#pragma once

#include <vector>

#include "src/replay/values/fill_rule.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// An argument of an operator that restricts its values. Where they are computed in the step, random
// ones in other places would make others than recorded.
struct DemandedValues {
  NodeId node;
  StorageVersion version;
  TensorId tensor;
  bool decides_size = false;  // the operator's result has another size with other values
};

struct ValueRules {
  std::vector<FillRule> of_versions;     // by storage version
  std::vector<DemandedValues> demanded;  // whole numbers and truth values, in order of entry
};

// For each storage version of the step how to fill it, should it have to be made. A demand on an
// argument goes back from where it is read over views and over operators that only move values
// (copies, cat, gather …) to the memory the values come from; a demand for offsets also over sums
// of lengths, one for what a root can be taken of also over arithmetic that keeps the sign.
ValueRules InferFillRules(const RecordedStep& step, const DataFlow& flow);

}  // namespace etude

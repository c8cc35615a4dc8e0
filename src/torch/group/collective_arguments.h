#pragma once

#include <string>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include "src/base/result.h"
#include "src/run/step/recorded_step.h"
#include "src/torch/group/rank_group.h"
#include "src/trace/trace.h"

namespace etude {

// Meaning of an operator argument for collectives.
enum class CollectiveRole : uint8_t {
  kNone,
  kGroup,      // a process group
  kGroupName,  // name of a process group: functional collectives
  kReduction,
};
CollectiveRole RoleOf(const c10::Argument& argument);

// A process group and its ranks in the job, in the group's order.
struct JobGroup {
  c10::IValue value;
  std::string name;
  std::vector<int64_t> ranks;
};

// Arguments of a recorded collective that refer to objects outside of the trace. The error message
// is the reason why the collective cannot be replayed. `recorded` is null if the trace lacks the
// value.

// Returns the process group of collective `node`: from the recorded value, otherwise from the
// communications inside the collective, otherwise the job's only group.
Result<JobGroup> GroupOf(const RecordedStep& step, NodeId node, const Value* recorded,
                         RankGroup& ranks);
// Returns the reduction. If the trace lacks it: the average if Gloo divided inside collective
// `node`, otherwise the sum; increments `assumed`.
Result<c10::IValue> ReductionOf(const Trace& trace, NodeId node, const Value* recorded,
                                int& assumed);

}  // namespace etude

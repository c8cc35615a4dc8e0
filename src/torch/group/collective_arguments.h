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

// What an argument of an operator means for collectives.
enum class CollectiveRole : uint8_t {
  kNone,
  kGroup,      // a process group
  kGroupName,  // the name of one: functional collectives
  kReduction,
};
CollectiveRole RoleOf(const c10::Argument& argument);

// A process group and its ranks in the job, in the group's order.
struct JobGroup {
  c10::IValue value;
  std::string name;
  std::vector<int64_t> ranks;
};

// The arguments of a recorded collective that stand for something outside of the trace. An error's
// message is the reason why the collective cannot be replayed. `recorded` is null where the trace
// has no value.

// The process group of collective `node`, as the trace says: by the value, else by the
// communications inside of it; where the job has one group only it is that.
Result<JobGroup> GroupOf(const RecordedStep& step, NodeId node, const Value* recorded,
                         RankGroup& ranks);
// The reduction; where the trace lacks it, the average if Gloo divided inside of collective `node`,
// else the sum, and `assumed` counts.
Result<c10::IValue> ReductionOf(const Trace& trace, NodeId node, const Value* recorded,
                                int& assumed);

}  // namespace etude

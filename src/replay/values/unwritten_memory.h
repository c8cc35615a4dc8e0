#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/run/step/data_flow.h"
#include "src/trace/trace.h"

namespace etude {

// Whether an operator of this name ("aten::t_") changes the form of its first argument in place,
// and not its content.
bool WritesForm(std::string_view name);

// Memory that an operator made without content (`empty`) and that is read before any operator wrote
// to it: code outside of the dispatcher did, as `torch.tensor(list)` does. In truth its values come
// from outside of the step.
struct UnwrittenMemory {
  uint32_t op = 0;    // index in the selection: who made it
  size_t result = 0;  // position among that operator's results
  StorageVersion version;
};

// The unwritten memory of `selection`, operators in order of entry of which none contains another;
// in the order in which it is first read.
std::vector<UnwrittenMemory> FindUnwrittenMemory(const Trace& trace, const DataFlow& flow,
                                                 std::span<const NodeId> selection);

}  // namespace etude

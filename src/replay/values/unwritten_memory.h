#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/run/step/data_flow.h"
#include "src/trace/trace.h"

namespace etude {

// Returns whether an operator of this name ("aten::t_") changes only the form of its first
// argument, not its content.
bool WritesForm(std::string_view name);

// Memory that an operator allocated without content (`empty`) and that is read before an operator
// writes to it. Code outside of the dispatcher wrote it, as in `torch.tensor(list)`, so its values
// come from outside of the step.
struct UnwrittenMemory {
  uint32_t op = 0;    // index of the allocating operator in the selection
  size_t result = 0;  // index among its results
  StorageVersion version;
};

// Returns the unwritten memory of `selection` (operators in order of entry, not nested), in the
// order of first reads.
std::vector<UnwrittenMemory> FindUnwrittenMemory(const Trace& trace, const DataFlow& flow,
                                                 std::span<const NodeId> selection);

}  // namespace etude

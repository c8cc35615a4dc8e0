#pragma once

#include <unordered_map>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Which of their arguments operators write to, as their schemas say ("Tensor(a!) self"). Remembers
// schemas. Not thread-safe; refers to the trace.
class UpdatedTensors {
 public:
  explicit UpdatedTensors(const Trace& trace) : trace_(trace) {}

  // For each tensor among the arguments of `node`, lists included: the order of DataFlow::inputs.
  std::vector<bool> Of(NodeId node);

 private:
  const Trace& trace_;
  std::unordered_map<StringId, std::vector<bool>> arguments_;  // by schema
};

}  // namespace etude

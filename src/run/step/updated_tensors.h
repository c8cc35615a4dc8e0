#pragma once

#include <unordered_map>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Arguments that operators write to, by their schemas ("Tensor(a!) self"). Caches schemas. Not
// thread-safe; refers to the trace.
class UpdatedTensors {
 public:
  explicit UpdatedTensors(const Trace& trace) : trace_(trace) {}

  // Returns a flag for each tensor among the arguments of `node`, including lists, in the order of
  // DataFlow::inputs.
  std::vector<bool> Of(NodeId node);

 private:
  const Trace& trace_;
  std::unordered_map<StringId, std::vector<bool>> arguments_;  // by schema
};

}  // namespace etude

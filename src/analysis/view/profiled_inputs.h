#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Shapes and types of operators' inputs, if recorded by a profiler (record_shapes) as the arguments
// "Input Dims" and "Input type" of its events. The trace must outlive it. Not thread-safe.
class ProfiledInputs {
 public:
  explicit ProfiledInputs(const Trace& trace);

  struct Inputs {
    uint64_t shapes = 0;         // equal for equal shapes and types; 0: no tensors
    std::optional<Bytes> bytes;  // total of element sizes over all tensors
  };
  // Returns nullopt if nothing was recorded.
  std::optional<Inputs> Of(NodeId node);

 private:
  const Trace& trace_;
  StringId dims_key_;
  StringId types_key_;
  std::unordered_map<uint64_t, Inputs> known_;  // by both texts
};

}  // namespace etude

#pragma once

#include <string_view>

#include "src/trace/words/enums.h"

// Names in PyTorch's execution traces.
namespace etude {

// Roots of the process and of its threads; old files use other names.
inline constexpr std::string_view kEtProcessRoot = "[pytorch|profiler|execution_trace|process]";
inline constexpr std::string_view kEtThreadRoot = "[pytorch|profiler|execution_trace|thread]";

// Returns true for operators, which have a schema or are Triton kernels.
inline bool IsEtOperator(bool has_schema, std::string_view kernel_backend) {
  return has_schema || kernel_backend == "triton";
}

// Returns the kind of a host node.
inline NodeKind KindOfEtNode(std::string_view name, bool is_operator) {
  if (name == kEtProcessRoot || name == "[pytorch|profiler|execution_graph|process]") {
    return NodeKind::kProcess;
  }
  if (name == kEtThreadRoot || name == "[pytorch|profiler|execution_graph|thread]") {
    return NodeKind::kThread;
  }
  return is_operator ? NodeKind::kOperator : NodeKind::kLabel;
}

}  // namespace etude

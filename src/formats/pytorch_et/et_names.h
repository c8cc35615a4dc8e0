#pragma once

#include <string_view>

#include "src/trace/words/enums.h"

// What the names of PyTorch's execution traces say of their nodes.
namespace etude {

// The roots of the process and of its threads; old files call them otherwise.
inline constexpr std::string_view kEtProcessRoot = "[pytorch|profiler|execution_trace|process]";
inline constexpr std::string_view kEtThreadRoot = "[pytorch|profiler|execution_trace|thread]";

// Whether a node is an operator: it has a schema, or is a Triton kernel.
inline bool IsEtOperator(bool has_schema, std::string_view kernel_backend) {
  return has_schema || kernel_backend == "triton";
}

// The kind of a host node.
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

#pragma once

#include <string_view>
#include <vector>

#include "src/trace/operator_name.h"
#include "src/trace/trace.h"

namespace etude {

// "aten" of "aten::add_".
inline std::string_view OperatorNamespace(std::string_view name) {
  const size_t colons = name.find("::");
  return colons == std::string_view::npos ? std::string_view() : name.substr(0, colons);
}

// For each argument of a schema whether the operator writes to it: "Tensor(a!) self".
std::vector<bool> UpdatedArguments(std::string_view schema);

inline std::string_view SchemaOf(const Trace& trace, NodeId node) {
  return trace.text(trace.op_schema(node));
}

// The full name by the schema, or the node's own for what has none (Triton kernels).
inline std::string_view OperatorNameOf(const Trace& trace, NodeId node) {
  const std::string_view schema = SchemaOf(trace, node);
  return schema.empty() ? trace.name(node) : FullOperatorName(schema);
}

}  // namespace etude

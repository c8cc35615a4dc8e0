#pragma once

#include <compare>
#include <optional>
#include <string>

#include "src/trace/trace.h"

namespace etude {

// Name and arguments of an operator, on which its time depends, as text: docs/formats/operators.md.
struct OperatorKey {
  std::string name;       // full name: "aten::addmm"
  std::string arguments;  // "float32[128],float32[512,128],float32[128,128]:1:128,1,1"

  friend bool operator==(const OperatorKey&, const OperatorKey&) = default;
  friend auto operator<=>(const OperatorKey&, const OperatorKey&) = default;
};

// Returns the key of an operator; nullopt if the trace lacks the size or the element type of one of
// its tensors, or part of its arguments, and for nodes that are not operators.
std::optional<OperatorKey> KeyOf(const Trace& trace, NodeId node);

}  // namespace etude

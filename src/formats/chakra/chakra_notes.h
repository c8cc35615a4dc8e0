#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

// Attributes of Chakra nodes that a trace keeps as in the file (Extra), decoded.
namespace etude::chakra {

// Returns the dimensions of the network that a collective uses, one bit each, from the list of
// bools 'involved_dim'; all bits if the node has none.
uint32_t InvolvedDims(const Trace& trace, NodeId node);

// A tensor of a generated trace, in the lists of strings 'inputs' and 'outputs'. Views point into
// the trace; `size` is a number of bytes, unchecked.
struct NamedTensor {
  std::string_view name;
  std::string_view size;
};
enum class TensorList : uint8_t { kInputs, kOutputs };
// Returns the tensors in file order; empty if the list is missing or malformed.
std::vector<NamedTensor> NamedTensors(const Trace& trace, NodeId node, TensorList list);

// Returns whether the file has a duration for the node that does not fit into nanoseconds.
bool HasTooLongDuration(const Trace& trace, NodeId node);

}  // namespace etude::chakra

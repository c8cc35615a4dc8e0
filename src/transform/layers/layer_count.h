#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/layers/layer_stack.h"

namespace etude {

struct LayerEdit {
  Trace trace;
  LayerStack stack;  // of the recorded step
  // Label of the outermost module in each recorded layer; empty without labels of modules.
  std::vector<std::string> modules;
  uint64_t nodes = 0;           // added or removed
  std::vector<NodeId> origins;  // by node of the edited trace: the recorded one
  bool gathers = false;         // layers gather tensors, such as sharded parameters
};

// Returns `trace`, a recorded step, as one of the same model with `layers` layers.
//
// More layers: each repetition of FindLayerStack continues with copies of all that its periods
// contain, with the communication that they issue and the device work that they launch, in turn of
// the recorded layers, and everything after it is later by their time. Fewer: the last layers are
// left out, and everything after them is earlier. Times of operators on lists change by the share
// of the lists that belongs to layers.
//
// kBadInput, with the reason, for traces without such layers, and for those that reduce gradients
// of several layers at once, in buckets that would change.
Result<LayerEdit> SetLayerCount(const Trace& trace, int64_t layers, const Limits& limits);

}  // namespace etude

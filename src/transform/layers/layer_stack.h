#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Operators on one host thread that repeat for each layer of a model, such as those of the forward
// pass. A period is everything on the thread between two bounds.
struct LayerRun {
  LaneId lane;
  std::vector<Nanos> bounds;   // begin of each period, and the end of the last
  std::vector<size_t> layers;  // layer of each period
  // Other layers, relative to that of a period, whose memory it gathers, such as sharded parameters
  // that the next period needs.
  std::set<int64_t> gathered;
  size_t operators = 0;  // of a period
  bool in_backward = false;

  // Returns the period around a moment of a thread; nullopt: none.
  std::optional<size_t> PeriodAt(LaneId of, Nanos moment) const;
};

// An operator on lists of tensors, such as an optimizer's, some of which belong to layers.
struct ListOperator {
  NodeId node;
  double share = 0;  // of its tensors' bytes that belong to layers
};

// Layers of the forward pass that are not those of the model's stack, such as those of a decoder.
struct OtherLayers {
  size_t layers = 0;
  std::string first;  // module of the first one, or its first operator
};

// The layers of a model as a recorded step shows them.
struct LayerStack {
  size_t layers = 0;           // at least 2
  std::vector<LayerRun> runs;  // by begin
  std::vector<ListOperator> lists;
  std::vector<std::string> others;        // operators outside of all runs that repeat as often
  std::vector<OtherLayers> other_layers;  // with at least a tenth of the operators of these

  // Returns the layer of the period around a moment of a thread; nullopt outside of all.
  std::optional<size_t> LayerAt(LaneId lane, Nanos moment) const;
};

// Finds layers in a step that was recorded with the tensors of operators. The sequence of a
// thread's outermost operators, with the shapes of their tensors, repeats for each layer, and each
// period uses memory of its own that existed before the step: the layer's parameters. Of all
// repetitions of the forward pass with such memory, the one that takes most time defines the
// layers; those of two count only if no longer one has most of the time, because they may be two
// models. Other repetitions of the step (backward pass, optimizer) belong to the layers if each of
// their periods uses memory of one layer. At most two layers may be missing in one of them.
//
// kBadInput, with the reason, if there are none, or if other operators use the parameters of layers
// that are missing nowhere.
Result<LayerStack> FindLayerStack(const Trace& trace);

}  // namespace etude

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/transform/edit/gradient_reduction.h"
#include "src/transform/layers/layer_stack.h"

namespace etude {

// Parts of a recorded training step. A pipeline repeats those in the middle for each micro-batch.
enum class StepPart : uint8_t { kBefore, kForward, kBackward, kAfter };
inline constexpr size_t kStepPartCount = 4;

// Work on a recorded node that belongs to a place: a part of the recorded layers in a row, with
// what comes before the first or after the last.
struct PlaceShare {
  uint32_t place = 0;
  double share = 1;  // of the node's time
};

// A tensor that a stage sends to the next one in the forward pass.
struct StageTensor {
  Bytes bytes;
  bool has_gradient = false;  // of the same size, which comes back in the backward pass
};

// A stage of a pipeline.
struct Stage {
  size_t first_layer = 0;
  size_t layers = 0;
  // Places that it runs, in the order of the forward pass: ascending ones in a row. A place runs
  // several times if layers are added.
  std::vector<std::vector<uint32_t>> segments;
  std::vector<StageTensor> sent;  // to the next stage
};

// Division of a recorded step into the stages of a pipeline.
struct StageSplit {
  LayerStack stack;  // of the recorded step; without layers if there is one stage
  std::vector<Stage> stages;
  std::vector<StepPart> parts;  // by node
  std::vector<uint32_t> works;  // by node: index into `shares`
  std::vector<std::vector<PlaceShare>> shares;
  std::vector<std::vector<RecordedGradient>> gradients;  // by place, in the order of arrival
  bool has_backward = false;
  uint64_t divided = 0;   // operators on lists whose time is divided by bytes
  uint64_t repeated = 0;  // operators after the backward pass on results of several places
  uint64_t copied = 0;    // operators of the forward pass without weights, for other places

  std::span<const PlaceShare> SharesOf(NodeId node) const { return shares[works[node.index()]]; }
};

// Divides a step that was recorded on one rank into `stages` pipeline stages with equally many
// layers of FindLayerStack; the first stages have one more if they do not divide evenly. What comes
// before the first layer belongs to the first stage, what comes after the last layer to the last
// one, and so do their backward passes. Work on parameters, gradients and optimizer states belongs
// to the place that has the parameters; operators on lists of tensors of several places are divided
// by their bytes.
//
// With `layers`, the model has that many layers: the recorded ones repeat in turn, or the last ones
// are left out. Layers that miss in the backward pass stay with the ends.
//
// A tensor that depends on weights is sent over each boundary to the last stage that reads it.
// Tensors that do not, such as masks and targets, are made on each stage that reads them.
//
// kBadInput, with the reason, for traces without such layers, with communication, with several
// backward passes, with weights of several places, and with sent tensors of unknown size.
Result<StageSplit> SplitStages(const Trace& trace, size_t stages,
                               std::optional<size_t> layers = std::nullopt);

}  // namespace etude

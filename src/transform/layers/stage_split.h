#pragma once

#include <cstddef>
#include <cstdint>
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

// Work of a pipeline stage on a recorded node.
struct StageShare {
  uint32_t stage = 0;
  double share = 1;  // of the node's time
};

// A tensor that a stage sends to the next one in the forward pass.
struct StageTensor {
  Bytes bytes;
  bool has_gradient = false;  // of the same size, which comes back in the backward pass
};

// Division of a recorded step into the stages of a pipeline.
struct StageSplit {
  LayerStack stack;                  // without layers if there is one stage
  std::vector<size_t> first_layers;  // by stage
  std::vector<StepPart> parts;       // by node
  std::vector<uint32_t> works;       // by node: index into `shares`
  std::vector<std::vector<StageShare>> shares;
  std::vector<std::vector<StageTensor>> boundaries;      // after each stage but the last
  std::vector<std::vector<RecordedGradient>> gradients;  // by stage, in the order of arrival
  bool has_backward = false;
  uint64_t divided = 0;   // operators on lists whose time is divided by bytes among stages
  uint64_t repeated = 0;  // operators after the backward pass that run on several stages
  uint64_t copied = 0;    // operators of the forward pass without weights, for other stages

  size_t stages() const { return first_layers.size(); }
  std::span<const StageShare> SharesOf(NodeId node) const { return shares[works[node.index()]]; }
};

// Divides a step that was recorded on one rank into `stages` pipeline stages with equally many
// layers of FindLayerStack; the first stages have one more if they do not divide evenly. What comes
// before the first layer belongs to the first stage, what comes after the last layer to the last
// one, and so do their backward passes. Work on parameters, gradients and optimizer states belongs
// to the stage that has the parameters; operators on lists of tensors of several stages are divided
// by their bytes.
//
// A tensor that depends on weights is sent over each boundary to the last stage that reads it.
// Tensors that do not, such as masks and targets, are made on each stage that reads them.
//
// kBadInput, with the reason, for traces without such layers, with communication, with several
// backward passes, with weights of several stages, and with sent tensors of unknown size.
Result<StageSplit> SplitStages(const Trace& trace, size_t stages);

}  // namespace etude

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "src/analysis/memory/tensor_lives.h"
#include "src/base/units.h"
#include "src/transform/layers/stage_split.h"

namespace etude {

// A recorded step of which an edited one runs parts repeatedly, or not at all. Each position of the
// recorded step belongs to a pass, such as the forward pass, and to places of the model, such as a
// layer.
struct RepeatedStep {
  // Order of the places in a pass.
  enum class Order : uint8_t { kRecorded, kForward, kBackward };
  struct Pass {
    Order order = Order::kRecorded;
    bool is_repeated = false;  // for each micro-batch
  };
  struct Run {
    uint32_t pass = 0;
    int64_t micro_batch = 0;
  };
  struct Stage {
    std::vector<uint32_t> places;  // that it runs, ascending, without equal layers
    uint32_t layers = 0;           // number of equal layers that it runs
    std::vector<Run> runs;         // in turn
  };

  std::vector<Pass> passes;       // in the recorded order
  std::vector<uint32_t> pass_of;  // by position of the step
  std::vector<uint32_t> work_of;  // by position: index into `shares`
  std::vector<std::vector<PlaceShare>> shares;
  uint32_t first_layer = 0;  // places that are equal layers, of which the edited step has others
  uint32_t end_layer = 0;
  int64_t micro_batches = 1;
  std::vector<Stage> stages;  // in the order of the model
};

// Peak memory of a stage by the name of the device.
using DevicePeaks = std::map<std::string_view, Bytes>;

// Returns the peak memory of the tensors on each stage of the edited step. A lower bound as
// TensorMemory, to which it is equal if the edited step is the recorded one.
//
// Each added layer has memory of its own, with the lifetimes of a recorded one: what the layer
// after the recorded one uses, the layer after the added one uses. Layers are added or left out in
// the middle, where they have neighbours on both sides. Each micro-batch has memory of its own for
// what the forward and the backward pass make, except for gradients of parameters: those of later
// micro-batches are added to the first ones. What another stage uses is kept until the end of the
// pass, and exists there from the begin of the pass to its last use. Memory from before the step
// exists once on each stage that uses it. Memory of operators that are divided by bytes is divided
// likewise.
//
// nullopt if the memory of added layers cannot be told from the recorded ones.
std::optional<std::vector<DevicePeaks>> FindRepeatedMemory(const TensorLives& lives,
                                                           const RepeatedStep& step);

}  // namespace etude

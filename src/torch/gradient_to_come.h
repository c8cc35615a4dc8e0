#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "src/replay/replay_plan.h"

namespace etude {

// Gives tensors a gradient to come while it lives: operators on them make nodes for a backward pass
// and keep what that needs, as they did in the recorded program. No backward pass will run: what
// comes before these tensors is a node that nothing else leads to.
class GradientToCome {
 public:
  // Of `slots` those among `differentiated`, if their elements can have gradients.
  GradientToCome(std::span<const SlotId> differentiated, const std::vector<at::Tensor>& slots)
      : differentiated_(differentiated), slots_(slots) {
    for (const SlotId slot : differentiated_) Give(slots_[slot.index()]);
  }
  ~GradientToCome() {
    for (const SlotId slot : differentiated_) TakeOff(slots_[slot.index()]);
  }
  GradientToCome(const GradientToCome&) = delete;
  GradientToCome& operator=(const GradientToCome&) = delete;

  // Takes what an operator made off a tensor that it returned, and with it what was kept.
  static void TakeOff(const at::Tensor& tensor);

 private:
  static void Give(const at::Tensor& tensor);

  std::span<const SlotId> differentiated_;
  const std::vector<at::Tensor>& slots_;
};

}  // namespace etude

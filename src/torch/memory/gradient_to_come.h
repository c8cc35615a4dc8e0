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
  // Of an operator's arguments `inputs`, in `slots`, those among `differentiated`, if their
  // elements can have gradients. None are touched if that is none.
  GradientToCome(std::span<const SlotId> inputs, std::span<const SlotId> differentiated,
                 const std::vector<at::Tensor>& slots);
  // What was written to, or what it is a view of, may have a gradient now that it had not before.
  ~GradientToCome();
  GradientToCome(const GradientToCome&) = delete;
  GradientToCome& operator=(const GradientToCome&) = delete;

  // Takes what an operator made off a tensor that it returned, and with it what was kept.
  static void TakeOff(const at::Tensor& tensor);

 private:
  static void Give(const at::Tensor& tensor);

  std::span<const SlotId> inputs_;  // none if there is nothing to take off
  const std::vector<at::Tensor>& slots_;
  std::vector<at::Tensor> bases_;  // of arguments that are views
};

}  // namespace etude

#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "src/replay/replay_plan.h"

namespace etude {

// Gives tensors a gradient to come during its lifetime: operators on them create autograd nodes and
// save tensors for the backward pass, as in the recorded program. No backward pass runs; the
// tensors share a predecessor node that nothing else reaches.
class GradientToCome {
 public:
  // Applies to those of an operator's arguments `inputs`, in `slots`, that are among
  // `differentiated` and can have gradients. Touches nothing if there are none.
  GradientToCome(std::span<const SlotId> inputs, std::span<const SlotId> differentiated,
                 const std::vector<at::Tensor>& slots);
  // Removes gradients, also from arguments that were written to and from bases of views, which may
  // have gained one.
  ~GradientToCome();
  GradientToCome(const GradientToCome&) = delete;
  GradientToCome& operator=(const GradientToCome&) = delete;

  // Removes the autograd node from a tensor that an operator returned, together with its saved
  // tensors.
  static void TakeOff(const at::Tensor& tensor);

 private:
  static void Give(const at::Tensor& tensor);

  std::span<const SlotId> inputs_;  // empty if there is nothing to remove
  const std::vector<at::Tensor>& slots_;
  std::vector<at::Tensor> bases_;  // bases of arguments that are views
};

}  // namespace etude

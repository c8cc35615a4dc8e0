#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"

namespace etude::suite {

// A step of a convolutional LSTM (Shi et al., 1506.04214) without connections from the cell to the
// gates: [N, in, H, W] → [N, channels, H, W].
class ConvLstm {
 public:
  struct State {
    at::Tensor hidden;  // [N, channels, H, W], also the output
    at::Tensor cell;    // [N, channels, H, W]
  };
  // The kernel is odd.
  ConvLstm(const Scope& scope, int64_t in, int64_t channels, int64_t kernel, Conv2d::Start start);
  // An undefined state is 0.
  State operator()(const at::Tensor& x, const State& before) const;

 private:
  int64_t channels_;
  Conv2d gates_;
};

}  // namespace etude::suite

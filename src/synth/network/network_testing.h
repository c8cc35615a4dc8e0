#pragma once

#include <utility>

#include "src/synth/network/network_builder.h"

namespace etude::testing_network {

// Makes a convolution of 3 × 4 × 4 numbers to 8 × 4 × 4, whose output is added to its norm and
// ReLU; then the mean of each channel, 10 classes. 224, 16 and 90 parameters, and two paths for a
// gradient.
inline Network SmallNetwork() {
  NetworkBuilder b;
  size_t x = b.Input("image", {3, 4, 4});
  b.Unit("a");
  x = b.Conv("conv", x, 8, {});
  b.Unit("b");
  const size_t norm = b.Plain("norm", {x}, LayerKind::kBatchNorm);
  x = b.Plain("add", {b.Plain("relu", {norm}, LayerKind::kRelu), x}, LayerKind::kAdd);
  b.Unit("c");
  x = b.Linear("linear", b.Plain("pool", {x}, LayerKind::kGlobalPool), 10);
  b.Plain("loss", {x}, LayerKind::kCrossEntropy);
  return MakeNetwork(std::move(b.model())).value();
}

}  // namespace etude::testing_network

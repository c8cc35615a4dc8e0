#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/weights.h"

namespace etude::suite {

// Shape of the network of Perspective Transformer Nets (Yan et al., 1612.00814) between a picture
// and a volume.
struct PtnShape {
  enum class Start : uint8_t {
    kTruncatedNormal,  // 0.02, no value beyond two deviations
    kHe,  // normal, √(2 / fan-in) (He, 1502.01852); the last layer 0.02, nearly empty
  };
  int64_t colours = 3;
  int64_t side = 64;     // of pictures
  int64_t filters = 64;  // of the first convolution; the second has twice, the third four times
  int64_t hidden = 1024;
  int64_t code = 512;
  std::vector<int64_t> channels = {512, 256, 96, 1};  // of volumes of side 4, 8, 16, …
  std::vector<int64_t> kernels = {4, 5, 6};           // from each of these to the next
  Start start = Start::kTruncatedNormal;
};

class PerspectiveTransformer {
 public:
  PerspectiveTransformer(const Scope& scope, const PtnShape& shape);

  // Pictures [N, colours, side, side], from 0 to 1 → shares of filled space [N, 1, S, S, S].
  at::Tensor operator()(const at::Tensor& pictures) const;

 private:
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;
  };
  PtnShape shape_;
  std::vector<Layer> convolutions_;
  std::vector<Layer> linear_;
  std::vector<Layer> growing_;
};

}  // namespace etude::suite

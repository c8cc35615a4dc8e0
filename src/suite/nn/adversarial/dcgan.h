#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Size of a DCGAN (Radford, 1511.06434), as the authors of WGAN have it (Arjovsky, 1701.07875).
struct DcganShape {
  int64_t side = 64;  // of pictures: a power of 2, 8 or more
  int64_t channels = 3;
  int64_t noise = 100;  // numbers that a picture is made of
  int64_t width = 64;   // channels beside the picture; they double with each halving
};

// Makes pictures of noise: [N, noise] → [N, channels, side, side], from -1 to 1.
class DcganGenerator {
 public:
  DcganGenerator(const Scope& scope, const DcganShape& shape);
  at::Tensor operator()(const at::Tensor& noise) const;

 private:
  std::vector<std::pair<TransposedConv2d, BatchNorm>> grow_;
  TransposedConv2d last_;
};

// Scores pictures without a limit: [N, channels, side, side] → [N].
class DcganCritic {
 public:
  DcganCritic(const Scope& scope, const DcganShape& shape);
  at::Tensor operator()(const at::Tensor& pictures) const;

 private:
  Conv2d first_;
  std::vector<std::pair<Conv2d, BatchNorm>> shrink_;
  Conv2d last_;
};

}  // namespace etude::suite

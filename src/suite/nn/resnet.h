#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Residual networks (He, 1512.03385), the classifier left out; detection uses their stages too.
struct ResNetShape {
  int64_t channels = 3;         // of the images
  int64_t width = 64;           // of the first stage
  std::vector<int64_t> blocks;  // by stage, each twice as wide and half as high as the one before
  bool bottlenecks =
      true;  // blocks of 1 × 1, 3 × 3, 1 × 1 with four times the width, else of two 3 × 3
  bool large_images = true;  // begins with a 7 × 7 convolution and a pool that quarter the size
  bool fixed_norms = false;  // normalises by what it was given, for few images a step
};

// One block: what it adds to its input, or to its input made to fit.
class ResidualBlock {
 public:
  ResidualBlock(const Scope& scope, int64_t in, int64_t width, int64_t stride, bool bottleneck);
  void FixNorms();
  at::Tensor operator()(const at::Tensor& x) const;
  int64_t out() const { return out_; }

 private:
  int64_t out_;
  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm> norms_;
  std::optional<Conv2d> fit_;  // none: the input fits
  std::optional<BatchNorm> fit_norm_;
};

class ResNet {
 public:
  ResNet(const Scope& scope, const ResNetShape& shape);

  // [N, channels, H, W] → the last stage's [N, out, H', W'].
  at::Tensor operator()(const at::Tensor& x) const;
  // The same in parts: what comes before the stages, then stage by stage.
  at::Tensor Begin(const at::Tensor& x) const;
  at::Tensor Stage(size_t stage, const at::Tensor& x) const;
  int64_t out() const { return stages_.back().back().out(); }
  int64_t OutOf(size_t stage) const { return stages_[stage].back().out(); }

 private:
  bool large_images_;
  Conv2d first_;
  BatchNorm first_norm_;
  std::vector<std::vector<ResidualBlock>> stages_;
};

}  // namespace etude::suite

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Residual networks (He, 1512.03385) without classifier; detection also uses their stages.
struct ResNetShape {
  int64_t channels = 3;         // of the images
  int64_t width = 64;           // in the first stage
  std::vector<int64_t> blocks;  // by stage; each stage doubles the width and halves the size
  bool bottlenecks =
      true;  // blocks of 1 × 1, 3 × 3, 1 × 1 with four times the width; otherwise two 3 × 3
  bool large_images = true;  // starts with a 7 × 7 convolution and a pool, which quarter the size
  bool fixed_norms = false;  // normalises by loaded statistics, for few images per step
};

// One block: adds a residual to its input, which is projected if the shapes differ.
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
  std::optional<Conv2d> fit_;  // nullopt: no projection
  std::optional<BatchNorm> fit_norm_;
};

class ResNet {
 public:
  ResNet(const Scope& scope, const ResNetShape& shape);

  // [N, channels, H, W] → the last stage's [N, out, H', W'].
  at::Tensor operator()(const at::Tensor& x) const;
  // Parts of the network: Begin computes everything before the stages; then apply one stage after
  // another.
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

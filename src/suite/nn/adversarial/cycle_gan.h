#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Translates pictures into pictures of another kind: [N, 3, H, W] → [N, 3, H, W], from -1 to 1. A
// residual network between convolutions that halve and double the sides (Johnson, 1603.08155), as
// the authors of CycleGAN have it (Zhu, 1703.10593).
class ResNetTranslator {
 public:
  struct Shape {
    int64_t width = 64;  // channels at full size; they double with each halving
    int64_t halvings = 2;
    int64_t blocks = 9;
  };
  ResNetTranslator(const Scope& scope, const Shape& shape);
  at::Tensor operator()(const at::Tensor& pictures) const;

 private:
  Conv2d first_;
  std::vector<Conv2d> shrink_;
  std::vector<std::pair<Conv2d, Conv2d>> blocks_;
  std::vector<TransposedConv2d> grow_;
  Conv2d last_;
};

// Scores each patch of pictures: [N, 3, H, W] → [N, 1, h, w], near 1 for real ones (PatchGAN;
// Isola, 1611.07004).
class PatchCritic {
 public:
  struct Shape {
    int64_t width = 64;
    int64_t halvings = 3;
  };
  PatchCritic(const Scope& scope, const Shape& shape);
  at::Tensor operator()(const at::Tensor& pictures) const;

 private:
  std::vector<Conv2d> layers_;
  Conv2d last_;
};

// Generated pictures of earlier steps (Shrivastava, 1612.07828). Part of the model's state, so that
// checkpoints contain it.
class ImagePool {
 public:
  ImagePool(const Scope& scope, int64_t capacity, int64_t side);

  // Returns, for each picture of `fresh` [N, 3, side, side], either the picture or, with
  // probability 1/2 if the pool is full, one of the pool, which the picture replaces. Until then
  // the pool keeps all pictures.
  at::Tensor Exchange(const at::Tensor& fresh) const;

 private:
  at::Tensor pictures_;
  at::Tensor count_;  // int64, a single number
};

}  // namespace etude::suite

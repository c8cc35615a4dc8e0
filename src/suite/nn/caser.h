#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct CaserShape {
  int64_t users = 0;
  int64_t items = 0;  // numbered from 1; 0: none
  int64_t width = 0;
  int64_t length = 5;       // of a sequence
  int64_t vertical = 2;     // filters over all items at one embedding position
  int64_t horizontal = 16;  // filters per number of neighbouring items
  double dropped = 0.5;
};

// Convolutional sequence embedding (Tang & Wang, WSDM 2018): scores the next item from a user's
// last items, as a picture of `length` × `width`, and the user. Layers, activations and initial
// weights are those of the authors' programs.
class Caser {
 public:
  Caser(const Scope& scope, const CaserShape& shape);

  // sequences: int64 [N, length], users: int64 [N] → [N, 2 × width].
  at::Tensor Features(const at::Tensor& sequences, const at::Tensor& users, bool training) const;
  // Return logits for each row of features: of items [N, M] as [N, M], or of all items as [N, items
  // + 1].
  at::Tensor Scores(const at::Tensor& features, const at::Tensor& items) const;
  at::Tensor AllScores(const at::Tensor& features) const;

 private:
  CaserShape shape_;
  Embedding users_;
  Embedding items_;
  Conv2d vertical_;
  std::vector<Conv2d> horizontal_;
  Linear hidden_;
  Embedding answers_;
  Embedding answer_bias_;
};

}  // namespace etude::suite

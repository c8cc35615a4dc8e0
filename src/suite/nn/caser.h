#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct CaserShape {
  int64_t users = 0;
  int64_t items = 0;  // numbered from 1; 0 is none
  int64_t width = 0;
  int64_t length = 5;       // of the sequences
  int64_t vertical = 2;     // filters over all items of one place of their embeddings
  int64_t horizontal = 16;  // filters over each number of neighbouring items
  double dropped = 0.5;
};

// Convolutional sequence embedding (Tang & Wang, WSDM 2018): what a user chose last, as a picture
// of `length` × `width`, and who the user is, score what comes next. Layers, activations and the
// weights' start are those of the author's programs.
class Caser {
 public:
  Caser(const Scope& scope, const CaserShape& shape);

  // sequences: int64 [N, length], users: int64 [N] → [N, 2 × width].
  at::Tensor Features(const at::Tensor& sequences, const at::Tensor& users, bool training) const;
  // Logits of items [N, M] for each row of features, or of all items: [N, M], [N, items + 1].
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

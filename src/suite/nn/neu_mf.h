#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct NeuMfShape {
  int64_t users = 0;
  int64_t items = 0;
  int64_t factors = 0;          // width of the embeddings that are multiplied
  std::vector<int64_t> widths;  // of the perceptron: input, then each layer
};

// Neural matrix factorization (He et al., 1708.05031): products of embeddings of user and item, and
// a perceptron over other embeddings of both, combined into one logit.
class NeuMf {
 public:
  NeuMf(const Scope& scope, const NeuMfShape& shape);

  // users: int64 [N], items: int64 [N, M], both from 0 → logits [N, M].
  at::Tensor operator()(const at::Tensor& users, const at::Tensor& items) const;

 private:
  Embedding factors_of_users_;
  Embedding factors_of_items_;
  Embedding users_;
  Embedding items_;
  std::vector<Linear> layers_;
  Linear answer_;
};

}  // namespace etude::suite

#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct DlrmShape {
  std::vector<int64_t> tables;  // rows of each
  int64_t width = 0;            // of the tables' rows
  std::vector<int64_t> bottom;  // of the perceptron over numbers: input, then each layer;
                                // the last is `width`
  std::vector<int64_t> top;     // layers over the products, the last is 1
};

// Deep learning recommendation model (Naumov et al., 1906.00091). A perceptron turns the numbers,
// and tables turn the categories, into vectors of one width. The products of all pairs of vectors,
// concatenated with the numbers' vector, go through another perceptron. Initial weights are those
// of the authors' program.
class Dlrm {
 public:
  Dlrm(const Scope& scope, const DlrmShape& shape);

  // numbers: float [N, in], categories: int64 [N, tables] → logits [N].
  at::Tensor operator()(const at::Tensor& numbers, const at::Tensor& categories) const;

 private:
  std::vector<at::Tensor> tables_;
  std::vector<Linear> bottom_;
  std::vector<Linear> top_;
  at::Tensor pairs_;  // int64: places of the products of pairs in the flat matrix of all products
};

}  // namespace etude::suite

#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/transformer.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct BertShape {
  int64_t words = 0;  // numbers of the vocabulary
  int64_t width = 768;
  int64_t heads = 12;
  int64_t hidden = 3072;
  int64_t layers = 12;
  int64_t places = 512;  // maximum number of tokens in a text
  double dropped = 0.1;
  double deviation = 0.02;  // initial value for all matrices
};

// BERT (Devlin et al., 1810.04805) with its two training heads: for masked words, and for whether a
// text's second part follows the first.
class Bert {
 public:
  Bert(const Scope& scope, const BertShape& shape);

  // text: int64 [N, T]; parts: 0 in the first part of a text, 1 in the second; mask: bool
  // [N, 1, 1, T], no padding → [N, T, width].
  at::Tensor operator()(const at::Tensor& text, const at::Tensor& parts,
                        const at::Tensor& mask) const;
  // [M, width] → [M, words].
  at::Tensor WordLogits(const at::Tensor& x) const;
  // [N, T, width] → [N, 2]: logits of another text and of the following one.
  at::Tensor NextLogits(const at::Tensor& x) const;

 private:
  const Weights* weights_;
  BertShape shape_;
  Embedding words_;
  Embedding places_;
  Embedding parts_;
  LayerNorm norm_;
  std::vector<TransformerLayer> layers_;
  Linear pooler_;
  Linear next_;
  Linear transform_;
  LayerNorm transform_norm_;
  at::Tensor bias_;  // of words; their matrix is the embeddings'
};

}  // namespace etude::suite

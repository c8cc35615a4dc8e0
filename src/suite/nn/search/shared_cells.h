#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/search/cell_architecture.h"
#include "src/suite/nn/transformer.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Shares that training sets to 0, each mask constant over the words of a text.
struct CellDropout {
  double words = 0;   // words, with all their occurrences in a batch
  double input = 0;   // elements of embedded words
  double output = 0;  // elements of the cell's result before the next words
};

struct SharedCellsShape {
  int64_t words = 0;     // numbers of the vocabulary
  int64_t width = 1000;  // of embedded words and of all nodes
  int64_t nodes = 12;
  CellDropout dropped;
  double word_range = 0.025;  // initial weights are uniform, up to this number
  double range = 0.025;
};

// A language model with the weights of all recurrent cells of some number of nodes (Pham et al.,
// 1802.03268): a matrix for each pair of nodes, of which a cell uses one for each node but the
// first. A node is a highway layer (Srivastava et al., 1505.00387). The mean of a cell's loose ends
// is normalised; it is both the result and the next state. The matrix of words serves for inputs
// and outputs.
class SharedCells {
 public:
  SharedCells(const Scope& scope, const SharedCellsShape& shape);

  // Runs a cell over words, int64 [T, N]. `state`: [N, width], replaced by the last one; undefined
  // before the first word. Returns [T, N, width].
  at::Tensor operator()(const at::Tensor& words, const CellArchitecture& cell,
                        at::Tensor& state) const;
  // [..., width] → [..., words].
  at::Tensor Logits(const at::Tensor& x) const;

 private:
  at::Tensor Embed(const at::Tensor& words) const;
  // Returns a mask for `share`, on the model's device; undefined outside of training.
  at::Tensor Mask(at::IntArrayRef sizes, double share) const;
  const Linear& Between(int64_t previous, int64_t node) const;

  const Weights* weights_;
  SharedCellsShape shape_;
  Embedding words_;
  Linear input_;
  Linear state_;
  std::vector<Linear> between_;  // by node and previous node
  LayerNorm norm_;
  at::Tensor bias_;  // of words
};

}  // namespace etude::suite

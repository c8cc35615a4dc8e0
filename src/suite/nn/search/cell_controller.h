#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/random_stream.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/search/cell_architecture.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct CellControllerShape {
  int64_t nodes = 12;
  int64_t hidden = 100;
  double temperature = 5;  // divides the logits, whose tanh then counts 2.5 times
};

// A controller that draws recurrent cells (Pham et al., 1802.03268): an LSTM that chooses for each
// node the earlier node that it reads and its activation, and whose next input is the choice.
class CellController {
 public:
  CellController(const Scope& scope, const CellControllerShape& shape);

  struct Drawn {
    CellArchitecture cell;
    at::Tensor log_probability;  // scalar
    at::Tensor entropy;          // scalar: the sum over the choices, in nats
  };
  // Draws a cell with the numbers of `random` alone.
  Drawn Draw(RandomStream& random) const;

 private:
  CellControllerShape shape_;
  Embedding choices_;  // the start, activations, nodes
  LstmCell lstm_;
  std::vector<Linear> previous_;  // by node, from the second on
  std::vector<Linear> activations_;
};

}  // namespace etude::suite

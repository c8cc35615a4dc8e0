#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/csr_weight.h"
#include "src/suite/nn/optimizer.h"
#include "src/suite/nn/weights.h"
#include "src/suite/results/sparsity.h"

namespace etude::suite {

// Masks on the parameters of two or more dimensions; vectors (biases, scales) stay dense. Weights
// outside the mask are 0 and have no gradient. All ranks have the same masks. With sparse kernels,
// linear layers that are not dense use them. Refers to the weights. Not thread-safe.
class SparseWeights {
 public:
  // Draws random masks and applies them. `most_steps`: the length of a run.
  SparseWeights(const Weights& weights, const SparseOptions& options, int64_t most_steps,
                uint64_t seed);

  // Returns whether the masks are updated instead of the weights at `step`.
  bool IsDue(int64_t step) const;
  // Prepares the sparse kernels of the group for a backward pass, before its forward pass. With
  // `updates_masks`, its gradients are for Update.
  void PrepareGradients(int group, bool updates_masks) const;
  // Updates the masks of the group's parameters, by their gradients before MaskGradients: drops the
  // smallest weights, and adds as many of the others; new ones begin at 0, as does their state.
  void Update(int64_t step, int group, Optimizer& optimizer);
  // Sets the gradients outside the masks to 0, and after a step of the optimizer the weights.
  void MaskGradients(int group) const;
  void MaskWeights(int group) const;

  // Returns the number of steps before `steps` that need the gradients of all weights.
  int64_t DenseBackwardPasses(int64_t steps) const;
  // Returns the densities of the layers by the address of the weight's memory, and for sparse
  // kernels by that of the sparse tensor.
  std::map<uint64_t, double> Densities() const;
  // Return the number of masked weights and of those that remain, counted in the masks.
  int64_t size() const;
  int64_t CountActive() const;
  // Returns the number of masked weights in layers with sparse kernels.
  int64_t CountInCsr() const;

  // Returns the masks for a checkpoint by name. The tensors are live; call TakeUpMasks after they
  // have been changed.
  std::vector<std::pair<std::string, at::Tensor>> State() const;
  void TakeUpMasks() const;

 private:
  struct Layer {
    std::string name;
    at::Tensor weight;
    at::Tensor mask;  // as the weight; 1 or 0
    int group = 0;
    int64_t count = 0;
    std::shared_ptr<CsrWeight> csr;  // null: dense kernels
  };

  SparseOptions options_;
  int64_t last_update_;  // step
  uint64_t seed_;
  std::vector<Layer> layers_;
};

}  // namespace etude::suite

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/network/network.h"
#include "src/synth/network/product_shape.h"

namespace etude {

// A computation of one layer for one micro-batch. An addition and a multiplication are two
// operations; each operand is read, each result written once.
struct NetworkWork {
  int64_t flops = 0;
  int64_t matrix_flops = 0;  // of them, in convolutions and matrix products
  ProductShape product;      // of linear layers
  Bytes read;
  Bytes written;

  friend bool operator==(const NetworkWork&, const NetworkWork&) = default;
};

// What a layer does; nothing where its result is a view of its input, or its gradients are views of
// that of its result.
struct NetworkWorks {
  std::optional<NetworkWork> forward;
  // Gradients of inputs, of norms also those of scales and offsets.
  std::optional<NetworkWork> input_gradient;
  std::optional<NetworkWork> weight_gradient;
};

enum class NetworkPhase : uint8_t { kTraining, kInference };

// What layers do for the images of a micro-batch. The network, which has to outlive it, has passed
// CheckNetworkWork for so many images.
class NetworkCosts {
 public:
  NetworkCosts(const Network& network, int64_t images, NetworkPhase phase);

  // `adds`: to gradients of weights that earlier micro-batches have left, which are read too.
  NetworkWorks Of(size_t layer, bool adds = false) const;
  // Whether the gradient of what comes out of a layer is computed: it depends on some weight.
  bool NeedsGradient(size_t layer) const { return needs_[layer]; }
  // Sums `count` gradients that come to what a layer gives from several others.
  NetworkWork GradientSum(size_t layer, int64_t count) const;
  // Images of which noise has been made, and the loss's noise: Ho et al. 2020, equation 4.
  NetworkWork Noise() const;
  NetworkWork AddNoise() const;
  // A step of sampling: Ho et al. 2020, algorithm 2, line 4.
  NetworkWork Denoise() const;
  // What the gradients of a layer need of forward: results of layers, and what the layer itself
  // makes beside its result (the noise of a loss is made before).
  struct NeededByBackward {
    std::vector<size_t> results;
    Bytes other;
  };
  NeededByBackward NeedsOf(size_t layer) const;
  // Of what comes out of a layer.
  Bytes ResultBytes(size_t layer) const { return Bytes{Elements(layer) * element_}; }
  // The layer whose result a view is of; of others the layer itself.
  size_t ViewedBy(size_t layer) const;
  // What forward keeps for backward, each result once.
  Bytes Kept() const;

 private:
  int64_t Elements(size_t layer) const { return images_ * network_.shapes[layer].elements(); }
  NetworkWork Elementwise(int64_t flops, int64_t read, int64_t written) const;
  NetworkWork Product(int64_t products, int64_t additions, int64_t read, int64_t written) const;
  NetworkWork WeightGradient(int64_t products, int64_t additions, int64_t read,
                             int64_t parameters) const;
  NetworkWorks Products(size_t layer) const;
  NetworkWorks Norm(size_t layer) const;
  NetworkWorks Activation(size_t layer) const;
  NetworkWorks Pool(size_t layer) const;
  NetworkWorks Combination(size_t layer) const;
  NetworkWorks Attention(size_t layer) const;
  NetworkWorks Lookup(size_t layer) const;
  NetworkWorks Loss(size_t layer) const;

  const Network& network_;
  const int64_t images_;
  const NetworkPhase phase_;
  const int64_t element_;   // bytes of weights and activations
  const int64_t gradient_;  // bytes of gradients of weights
  std::vector<bool> needs_;
};

// kBadInput unless all numbers of so many images fit into 64 bits.
Status CheckNetworkWork(const Network& network, int64_t images);

enum class OptimizerKind : uint8_t { kSgd, kAdam };  // with momentum

// Of so many parameters, of which the rank has everything.
NetworkWork UpdateWork(const NetworkModel& model, OptimizerKind optimizer, int64_t parameters);
// That the optimizer keeps of a parameter; and, of a network that denoises, the average.
Bytes OptimizerBytes(const NetworkModel& model, OptimizerKind optimizer);
// The average of weights over steps.
NetworkWork AverageWork(const NetworkModel& model, int64_t parameters);

}  // namespace etude

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/network/network.h"
#include "src/synth/network/product_shape.h"

namespace etude {

// Computation of one layer for one micro-batch. An addition and a multiplication are two
// operations; each operand is read, each result written once.
struct NetworkWork {
  int64_t flops = 0;
  int64_t matrix_flops = 0;  // the part in convolutions and matrix products
  ProductShape product;      // of linear layers
  Bytes read;
  Bytes written;

  friend bool operator==(const NetworkWork&, const NetworkWork&) = default;
};

// Work of a layer; empty if its result is a view of its input, or its gradients are views of its
// result's gradient.
struct NetworkWorks {
  std::optional<NetworkWork> forward;
  // Gradients of inputs; for norms also those of scales and offsets.
  std::optional<NetworkWork> input_gradient;
  std::optional<NetworkWork> weight_gradient;
};

enum class NetworkPhase : uint8_t { kTraining, kInference };

// Work of layers for the images of a micro-batch. The network must outlive it and must have passed
// CheckNetworkWork for this number of images.
class NetworkCosts {
 public:
  NetworkCosts(const Network& network, int64_t images, NetworkPhase phase);

  // Returns the work of a layer. `adds`: adds to gradients of weights from earlier micro-batches,
  // which are read too.
  NetworkWorks Of(size_t layer, bool adds = false) const;
  // Returns true if the gradient of a layer's output is computed: it depends on some weight.
  bool NeedsGradient(size_t layer) const { return needs_[layer]; }
  // Returns the work of summing `count` gradients of a layer's output from several users.
  NetworkWork GradientSum(size_t layer, int64_t count) const;
  // Return the work of making noise, and of adding it to images: Ho et al. 2020, equation 4.
  NetworkWork Noise() const;
  NetworkWork AddNoise() const;
  // Returns the work of a step of sampling: Ho et al. 2020, algorithm 2, line 4.
  NetworkWork Denoise() const;
  // Values of the forward pass needed by a layer's gradients: results of layers, and values that
  // the layer makes in addition to its result (the noise of a loss is made earlier).
  struct NeededByBackward {
    std::vector<size_t> results;
    Bytes other;
  };
  NeededByBackward NeedsOf(size_t layer) const;
  // Returns the bytes of a layer's output.
  Bytes ResultBytes(size_t layer) const { return Bytes{Elements(layer) * element_}; }
  // Returns the layer whose result a view refers to; for other layers the layer itself.
  size_t ViewedBy(size_t layer) const;
  // Returns the bytes kept by forward for backward, each result once.
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

// Returns kBadInput unless all numbers for this many images fit into 64 bits.
Status CheckNetworkWork(const Network& network, int64_t images);

enum class OptimizerKind : uint8_t { kSgd, kAdam };  // with momentum

// Returns the work of updating `parameters`, with all states on the rank.
NetworkWork UpdateWork(const NetworkModel& model, OptimizerKind optimizer, int64_t parameters);
// Returns the bytes that the optimizer keeps per parameter, including the average of a denoising
// network.
Bytes OptimizerBytes(const NetworkModel& model, OptimizerKind optimizer);
// Returns the work of the average of weights over steps.
NetworkWork AverageWork(const NetworkModel& model, int64_t parameters);

}  // namespace etude

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/synth/device/misfit.h"
#include "src/trace/words/enums.h"

// Networks of layers with shapes: convolutional networks, U-Nets, image transformers.
// docs/models/network.md has the formulas and their sources.
namespace etude {

// Shape of one image: channels at positions. A vector has one position, a sequence one column.
struct Shape {
  int64_t channels = 0;
  int64_t height = 1;
  int64_t width = 1;

  int64_t positions() const { return height * width; }
  int64_t elements() const { return channels * height * width; }

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Extent {
  int64_t height = 1;
  int64_t width = 1;

  friend bool operator==(const Extent&, const Extent&) = default;
};

enum class LayerKind : uint8_t {
  kInput,
  kConv,
  kLinear,  // of the channels at each position
  kBatchNorm,
  kGroupNorm,
  kLayerNorm,  // of the channels at each position
  kRelu,
  kRelu6,
  kSilu,
  kSigmoid,
  kGelu,   // tanh approximation
  kGeglu,  // first half of the channels times the exact GELU of the second
  kMaxPool,
  kAvgPool,
  kGlobalPool,  // mean of all positions
  kAdd,         // vectors are added at all positions
  kMultiply,    // of two inputs; a vector at all positions
  kModulate,    // x, shift, scale: x (1 + scale) + shift, vectors at all positions
  kConcat,      // of channels
  kSlice,       // channels from `offset` on
  kFlatten,
  kUpsample,      // repeats each position `factor` times along both sides
  kPixelShuffle,  // factor² channels become factor × factor positions
  kAttention,     // of a packed tensor, or of queries, keys and values
  kPositions,     // adds a vector for each position
  kSinusoid,      // sines and cosines of a number
  kEmbedding,     // row of a table for a number
  kCrossEntropy,  // of classes at each position
  kSquaredError,  // from a target of the same shape
};

// Returns every kind with its name in files.
std::span<const std::pair<std::string_view, LayerKind>> LayerKinds();
std::string_view Name(LayerKind kind);

struct NetworkLayer {
  std::string name;
  LayerKind kind = LayerKind::kInput;
  std::vector<size_t> inputs;  // indices of earlier layers
  // Weights of neighbouring layers with one unit are gathered and reduced together if replicas
  // share them.
  std::string unit;

  // kInput: the whole shape. kConv, kLinear, kSlice, kSinusoid, kEmbedding: output channels.
  Shape shape;
  Extent kernel;
  Extent stride;
  Extent padding{0, 0};
  Extent dilation;
  int64_t groups = 1;  // of kConv, kGroupNorm
  bool bias = true;    // of kConv, kLinear
  // Norms: scales and offsets. kPositions: learned.
  bool affine = true;
  int64_t heads = 1;
  int64_t offset = 0;
  int64_t factor = 1;
  int64_t rows = 0;  // of kEmbedding

  friend bool operator==(const NetworkLayer&, const NetworkLayer&) = default;
};

// The first layer is the input whose extent may be changed, the last one the loss.
struct NetworkModel {
  std::vector<NetworkLayer> layers;
  // True if the input consists of an image and noise, the loss is that of the noise, and an average
  // of the weights over steps is kept: Ho et al. 2020.
  bool denoises = false;
  DType weights = DType::kFloat32;  // and activations
  DType gradients = DType::kFloat32;
  DType optimizer = DType::kFloat32;  // its states, and the average

  friend bool operator==(const NetworkModel&, const NetworkModel&) = default;
};

// Returns the output shape of a layer; a misfit, with the expected values and the keys of its
// [[layer]], unless its inputs fit.
tl::expected<Shape, Misfit> ShapeOf(const NetworkLayer& layer, std::span<const Shape> inputs);

// Returns the number of a layer's parameters, including biases, scales and offsets.
int64_t ParametersOf(const NetworkLayer& layer, std::span<const Shape> inputs);

// A model with all its shapes.
struct Network {
  NetworkModel model;
  std::vector<Shape> shapes;  // by layer

  std::vector<Shape> InputsOf(size_t layer) const;
  int64_t parameters() const;
};
// Makes a network. `image` replaces the first input's own extent. Returns a misfit of the layer's
// keys if shapes do not fit, if an input is not an earlier layer, or unless the last layer is the
// only loss.
tl::expected<Network, Misfit> MakeNetwork(NetworkModel model,
                                          std::optional<Extent> image = std::nullopt);

// Converts for estimates of values that may not fit into 64 bits.
inline double AsReal(int64_t value) { return static_cast<double>(value); }

}  // namespace etude

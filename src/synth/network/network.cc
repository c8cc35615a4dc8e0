#include "src/synth/network/network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr auto kKinds = std::to_array<std::pair<std::string_view, LayerKind>>({
    {"input", LayerKind::kInput},
    {"conv", LayerKind::kConv},
    {"linear", LayerKind::kLinear},
    {"batch_norm", LayerKind::kBatchNorm},
    {"group_norm", LayerKind::kGroupNorm},
    {"layer_norm", LayerKind::kLayerNorm},
    {"relu", LayerKind::kRelu},
    {"relu6", LayerKind::kRelu6},
    {"silu", LayerKind::kSilu},
    {"sigmoid", LayerKind::kSigmoid},
    {"gelu", LayerKind::kGelu},
    {"geglu", LayerKind::kGeglu},
    {"max_pool", LayerKind::kMaxPool},
    {"avg_pool", LayerKind::kAvgPool},
    {"global_pool", LayerKind::kGlobalPool},
    {"add", LayerKind::kAdd},
    {"multiply", LayerKind::kMultiply},
    {"modulate", LayerKind::kModulate},
    {"concat", LayerKind::kConcat},
    {"slice", LayerKind::kSlice},
    {"flatten", LayerKind::kFlatten},
    {"upsample", LayerKind::kUpsample},
    {"pixel_shuffle", LayerKind::kPixelShuffle},
    {"attention", LayerKind::kAttention},
    {"positions", LayerKind::kPositions},
    {"sinusoid", LayerKind::kSinusoid},
    {"embedding", LayerKind::kEmbedding},
    {"cross_entropy", LayerKind::kCrossEntropy},
    {"squared_error", LayerKind::kSquaredError},
});

// Number of inputs of a layer.
struct InputCount {
  size_t least = 1;
  size_t most = 1;
};
InputCount InputsOfKind(LayerKind kind) {
  constexpr size_t kMany = 1000;
  switch (kind) {
    case LayerKind::kInput: return {0, 0};
    case LayerKind::kAdd:
    case LayerKind::kConcat: return {2, kMany};
    case LayerKind::kMultiply: return {2, 2};
    case LayerKind::kModulate: return {3, 3};
    case LayerKind::kAttention: return {1, 3};
    case LayerKind::kConv:
    case LayerKind::kLinear:
    case LayerKind::kBatchNorm:
    case LayerKind::kGroupNorm:
    case LayerKind::kLayerNorm:
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kSilu:
    case LayerKind::kSigmoid:
    case LayerKind::kGelu:
    case LayerKind::kGeglu:
    case LayerKind::kMaxPool:
    case LayerKind::kAvgPool:
    case LayerKind::kGlobalPool:
    case LayerKind::kSlice:
    case LayerKind::kFlatten:
    case LayerKind::kUpsample:
    case LayerKind::kPixelShuffle:
    case LayerKind::kPositions:
    case LayerKind::kSinusoid:
    case LayerKind::kEmbedding:
    case LayerKind::kCrossEntropy:
    case LayerKind::kSquaredError: return {};
  }
  return {};
}

std::string TextOf(const Shape& shape) {
  return fmt::format("{} × {} × {}", shape.channels, shape.height, shape.width);
}

// A shape, or a misfit of keys of the layer's [[layer]].
using FitShape = tl::expected<Shape, Misfit>;

// Returns the window positions of a convolution or pool.
FitShape Windows(const NetworkLayer& layer, const Shape& in, int64_t channels) {
  const auto along = [](int64_t size, int64_t padding, int64_t kernel, int64_t dilation,
                        int64_t stride) {
    const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  };
  const Shape out{.channels = channels,
                  .height = along(in.height, layer.padding.height, layer.kernel.height,
                                  layer.dilation.height, layer.stride.height),
                  .width = along(in.width, layer.padding.width, layer.kernel.width,
                                 layer.dilation.width, layer.stride.width)};
  if (out.height < 1 || out.width < 1) {
    return MakeMisfit({"kernel"},
                      fmt::format("found an input of {}, expected one that the kernel of {} × {} "
                                  "fits into",
                                  TextOf(in), layer.kernel.height, layer.kernel.width));
  }
  return out;
}

Fits Divides(std::string key, std::string_view what, int64_t divisor, int64_t channels) {
  if (channels % divisor == 0) return {};
  return MakeMisfit(
      {std::move(key)},
      fmt::format("found {} channels, expected a multiple of {} ({})", channels, divisor, what));
}

Fits CheckVector(std::string_view what, const Shape& shape, int64_t channels) {
  if (shape == Shape{.channels = channels}) return {};
  return MakeMisfit({"inputs"}, fmt::format("{}: found {}, expected {}", what, TextOf(shape),
                                            TextOf({.channels = channels})));
}

// Accepts inputs of the first one's shape, or vectors for all its positions.
FitShape Together(std::span<const Shape> inputs) {
  for (const Shape& other : inputs.subspan(1)) {
    if (other == inputs[0] || other == Shape{.channels = inputs[0].channels}) continue;
    return MakeMisfit({"inputs"},
                      fmt::format("found inputs of {} and {}, expected one shape, or vectors of {}",
                                  TextOf(inputs[0]), TextOf(other), inputs[0].channels));
  }
  return inputs[0];
}

FitShape Concatenated(std::span<const Shape> inputs) {
  Shape out = inputs[0];
  for (const Shape& other : inputs.subspan(1)) {
    if (other.height != out.height || other.width != out.width) {
      return MakeMisfit({"inputs"},
                        fmt::format("found inputs of {} and {}, expected the same positions",
                                    TextOf(inputs[0]), TextOf(other)));
    }
    out.channels += other.channels;
  }
  return out;
}

FitShape Attended(const NetworkLayer& layer, std::span<const Shape> inputs) {
  Shape out = inputs[0];
  if (inputs.size() == 2) return MakeMisfit({"inputs"}, "found 2 inputs, expected 1 or 3");
  if (inputs.size() == 1) {
    ETUDE_RETURN_IF_MISFIT(Divides("inputs", "queries, keys and values", 3, out.channels));
    out.channels /= 3;
  } else if (inputs[1].channels != out.channels || inputs[2] != inputs[1]) {
    return MakeMisfit({"inputs"},
                      fmt::format("found queries of {}, keys of {} and values of {}, expected one "
                                  "number of channels, and keys and values of one shape",
                                  TextOf(out), TextOf(inputs[1]), TextOf(inputs[2])));
  }
  ETUDE_RETURN_IF_MISFIT(Divides("heads", "heads", layer.heads, out.channels));
  return out;
}

FitShape ShapeOfKind(const NetworkLayer& layer, std::span<const Shape> inputs) {
  const Shape in = inputs.empty() ? layer.shape : inputs[0];
  Shape out = in;
  switch (layer.kind) {
    case LayerKind::kInput: return layer.shape;
    case LayerKind::kConv:
      ETUDE_RETURN_IF_MISFIT(Divides("groups", "groups", layer.groups, in.channels));
      ETUDE_RETURN_IF_MISFIT(Divides("groups", "groups", layer.groups, layer.shape.channels));
      return Windows(layer, in, layer.shape.channels);
    case LayerKind::kLinear: out.channels = layer.shape.channels; return out;
    case LayerKind::kGroupNorm:
      ETUDE_RETURN_IF_MISFIT(Divides("groups", "groups", layer.groups, in.channels));
      return in;
    case LayerKind::kBatchNorm:
    case LayerKind::kLayerNorm:
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kSilu:
    case LayerKind::kSigmoid:
    case LayerKind::kGelu:
    case LayerKind::kPositions: return in;
    case LayerKind::kGeglu:
      ETUDE_RETURN_IF_MISFIT(Divides("inputs", "halves", 2, in.channels));
      out.channels /= 2;
      return out;
    case LayerKind::kMaxPool:
    case LayerKind::kAvgPool:
      if (2 * layer.padding.height > layer.kernel.height ||
          2 * layer.padding.width > layer.kernel.width) {
        return MakeMisfit(
            {"padding"},
            fmt::format("found padding of {} × {}, expected up to half of the kernel of {} × {}",
                        layer.padding.height, layer.padding.width, layer.kernel.height,
                        layer.kernel.width));
      }
      return Windows(layer, in, in.channels);
    case LayerKind::kGlobalPool: return Shape{.channels = in.channels};
    case LayerKind::kAdd:
    case LayerKind::kMultiply: return Together(inputs);
    case LayerKind::kModulate:
      ETUDE_RETURN_IF_MISFIT(CheckVector("shift", inputs[1], in.channels));
      ETUDE_RETURN_IF_MISFIT(CheckVector("scale", inputs[2], in.channels));
      return in;
    case LayerKind::kConcat: return Concatenated(inputs);
    case LayerKind::kSlice:
      if (layer.offset + layer.shape.channels > in.channels) {
        return MakeMisfit(
            {"channels"},
            fmt::format("found {} channels, expected {} or more for {} from {} on", in.channels,
                        layer.offset + layer.shape.channels, layer.shape.channels, layer.offset));
      }
      out.channels = layer.shape.channels;
      return out;
    case LayerKind::kFlatten: return Shape{.channels = in.elements()};
    case LayerKind::kUpsample:
      out.height *= layer.factor;
      out.width *= layer.factor;
      return out;
    case LayerKind::kPixelShuffle:
      ETUDE_RETURN_IF_MISFIT(
          Divides("factor", "factor²", layer.factor * layer.factor, in.channels));
      out.channels /= layer.factor * layer.factor;
      out.height *= layer.factor;
      out.width *= layer.factor;
      return out;
    case LayerKind::kAttention: return Attended(layer, inputs);
    case LayerKind::kSinusoid:
      ETUDE_RETURN_IF_MISFIT(CheckVector("the number", in, 1));
      ETUDE_RETURN_IF_MISFIT(Divides("channels", "sines and cosines", 2, layer.shape.channels));
      return Shape{.channels = layer.shape.channels};
    case LayerKind::kEmbedding:
      ETUDE_RETURN_IF_MISFIT(CheckVector("the number", in, 1));
      return Shape{.channels = layer.shape.channels};
    case LayerKind::kCrossEntropy:
    case LayerKind::kSquaredError: return Shape{.channels = 1};
  }
  return in;
}

bool IsLoss(LayerKind kind) {
  return kind == LayerKind::kCrossEntropy || kind == LayerKind::kSquaredError;
}

}  // namespace

std::span<const std::pair<std::string_view, LayerKind>> LayerKinds() { return kKinds; }

std::string_view Name(LayerKind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<std::string_view, LayerKind>::second)->first;
}

tl::expected<Shape, Misfit> ShapeOf(const NetworkLayer& layer, std::span<const Shape> inputs) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const InputCount takes = InputsOfKind(layer.kind);
  if (inputs.size() < takes.least || inputs.size() > takes.most) {
    return MakeMisfit(
        {"inputs", "type"},
        fmt::format("{}: found {} inputs, expected {}", Name(layer.kind), inputs.size(),
                    takes.least == takes.most ? std::to_string(takes.least)
                                              : fmt::format("{} to {}", takes.least, takes.most)));
  }
  struct Number {
    const char* key;
    int64_t value;
    int64_t least;
  };
  for (const Number& number :
       {Number{"kernel", layer.kernel.height, 1}, Number{"kernel", layer.kernel.width, 1},
        Number{"stride", layer.stride.height, 1}, Number{"stride", layer.stride.width, 1},
        Number{"dilation", layer.dilation.height, 1}, Number{"dilation", layer.dilation.width, 1},
        Number{"groups", layer.groups, 1}, Number{"heads", layer.heads, 1},
        Number{"padding", layer.padding.height, 0}, Number{"padding", layer.padding.width, 0},
        Number{"offset", layer.offset, 0}, Number{"rows", layer.rows, 0},
        Number{"channels", layer.shape.channels, 0}, Number{"shape", layer.shape.height, 0},
        Number{"shape", layer.shape.width, 0}}) {
    if (number.value < number.least || number.value > kMost) {
      return MakeMisfit({number.key, "shape"},
                        fmt::format("{}: found {}, expected {} to {}", Name(layer.kind),
                                    number.value, number.least, kMost));
    }
  }
  constexpr int64_t kMostFactor = 1024;
  if (layer.factor < 1 || layer.factor > kMostFactor) {
    return MakeMisfit({"factor"},
                      fmt::format("factor: found {}, expected 1 to {}", layer.factor, kMostFactor));
  }
  const FitShape shape = ShapeOfKind(layer, inputs);
  if (!shape) return shape;
  const Shape& out = *shape;
  if (out.channels < 1 || out.height < 1 || out.width < 1) {
    return MakeMisfit({"channels", "shape"},
                      fmt::format("found {}, expected a positive number of each", TextOf(out)));
  }
  const double elements = AsReal(out.channels) * AsReal(out.height) * AsReal(out.width);
  double parameters = elements + AsReal(layer.rows) * AsReal(out.channels);
  if (!inputs.empty()) {
    parameters += AsReal(layer.kernel.height) * AsReal(layer.kernel.width) *
                  AsReal(inputs[0].channels) * AsReal(out.channels);
  }
  if (elements > std::ldexp(1, 40) || parameters > std::ldexp(1, 45)) {
    return MakeMisfit({"channels", "shape", "factor"},
                      fmt::format("found {} and about {:.1e} parameters, expected fewer",
                                  TextOf(out), parameters));
  }
  return shape;
}

int64_t ParametersOf(const NetworkLayer& layer, std::span<const Shape> inputs) {
  const int64_t out = layer.shape.channels;
  switch (layer.kind) {
    case LayerKind::kConv:
      return out * (inputs[0].channels / layer.groups * layer.kernel.height * layer.kernel.width +
                    (layer.bias ? 1 : 0));
    case LayerKind::kLinear: return out * (inputs[0].channels + (layer.bias ? 1 : 0));
    case LayerKind::kBatchNorm:
    case LayerKind::kGroupNorm:
    case LayerKind::kLayerNorm: return layer.affine ? 2 * inputs[0].channels : 0;
    case LayerKind::kPositions: return layer.affine ? inputs[0].elements() : 0;
    case LayerKind::kEmbedding: return layer.rows * out;
    case LayerKind::kInput:
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kSilu:
    case LayerKind::kSigmoid:
    case LayerKind::kGelu:
    case LayerKind::kGeglu:
    case LayerKind::kMaxPool:
    case LayerKind::kAvgPool:
    case LayerKind::kGlobalPool:
    case LayerKind::kAdd:
    case LayerKind::kMultiply:
    case LayerKind::kModulate:
    case LayerKind::kConcat:
    case LayerKind::kSlice:
    case LayerKind::kFlatten:
    case LayerKind::kUpsample:
    case LayerKind::kPixelShuffle:
    case LayerKind::kAttention:
    case LayerKind::kSinusoid:
    case LayerKind::kCrossEntropy:
    case LayerKind::kSquaredError: return 0;
  }
  return 0;
}

std::vector<Shape> Network::InputsOf(size_t layer) const {
  std::vector<Shape> inputs;
  for (const size_t input : model.layers[layer].inputs) inputs.push_back(shapes[input]);
  return inputs;
}

int64_t Network::parameters() const {
  int64_t sum = 0;
  for (size_t i = 0; i < model.layers.size(); ++i)
    sum += ParametersOf(model.layers[i], InputsOf(i));
  return sum;
}

tl::expected<Network, Misfit> MakeNetwork(NetworkModel model, std::optional<Extent> image) {
  constexpr size_t kMostLayers = 100'000;
  Network network{.model = std::move(model)};
  std::vector<NetworkLayer>& layers = network.model.layers;
  if (layers.empty() || layers.size() > kMostLayers) {
    return MakeMisfit({},
                      fmt::format("found {} layers, expected 1 to {}", layers.size(), kMostLayers));
  }
  if (layers.front().kind != LayerKind::kInput) {
    return MakeMisfit({"layer." + layers.front().name + ".type"},
                      fmt::format("layer '{}': found {}, expected the first to be an input",
                                  layers.front().name, Name(layers.front().kind)));
  }
  if (image) {
    layers.front().shape.height = image->height;
    layers.front().shape.width = image->width;
  }
  std::set<std::string_view> names;
  std::vector<bool> used(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const NetworkLayer& layer = layers[i];
    const auto wrong = [&](std::vector<std::string> keys, std::string_view message) {
      for (std::string& key : keys) key = fmt::format("layer.{}.{}", layer.name, key);
      keys.push_back("layer." + layer.name);
      return MakeMisfit(std::move(keys), fmt::format("layer '{}': {}", layer.name, message));
    };
    if (!names.insert(layer.name).second)
      return wrong({"name"}, "found two layers with this name, expected unique names");
    for (const size_t input : layer.inputs) {
      if (input >= i) return wrong({"inputs"}, "found an input that is not an earlier layer");
      used[input] = true;
    }
    if (IsLoss(layer.kind) != (i + 1 == layers.size())) {
      return wrong({"type"},
                   fmt::format("found {}, expected one loss, the last layer: cross_entropy or "
                               "squared_error",
                               Name(layer.kind)));
    }
    const FitShape shape = ShapeOf(layer, network.InputsOf(i));
    if (!shape) return wrong(shape.error().keys, shape.error().message);
    network.shapes.push_back(*shape);
  }
  used.back() = true;
  const auto unused = std::ranges::find(used, false);
  if (unused != used.end()) {
    const std::string& name = layers[static_cast<size_t>(unused - used.begin())].name;
    return MakeMisfit(
        {"layer." + name},
        fmt::format(
            "layer '{}': found no use of its output, expected the loss to depend on all layers",
            name));
  }
  return network;
}

}  // namespace etude

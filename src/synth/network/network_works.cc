#include "src/synth/network/network_works.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr int64_t kNumberBytes = 8;  // of class numbers, of places in windows
constexpr int64_t kRealBytes = 4;    // the loss is in single precision

// Operations per element; functions such as exp and erf count as one.
struct ElementFlops {
  int64_t forward = 0;
  int64_t backward = 0;
};
constexpr ElementFlops FlopsOfActivation(LayerKind kind) {
  switch (kind) {
    case LayerKind::kRelu: return {1, 1};
    case LayerKind::kRelu6: return {2, 2};
    case LayerKind::kSilu: return {4, 9};
    case LayerKind::kSigmoid: return {4, 3};
    case LayerKind::kGelu: return {9, 18};
    case LayerKind::kGeglu: return {6, 14};
    default: return {};
  }
}
constexpr ElementFlops kNormFlops{7, 13};
constexpr ElementFlops kPlainNormFlops{5, 9};  // without scales and offsets
// Means and deviations are known: a factor and an offset for each channel.
constexpr int64_t kFixedNormFlops = 2;
constexpr ElementFlops kSoftmaxOfPair{6, 8};
constexpr int64_t kSgdUpdateFlops = 6;  // weight decay, momentum, step: two each
constexpr int64_t kAdamUpdateFlops = 14;
constexpr int64_t kAverageFlops = 3;
constexpr int64_t kNoiseFlops = 1;    // a random number
constexpr int64_t kNoisyFlops = 3;    // two factors and a sum
constexpr int64_t kDenoiseFlops = 6;  // three factors, a difference, a random number and a sum

bool IsView(LayerKind kind) { return kind == LayerKind::kSlice || kind == LayerKind::kFlatten; }

}  // namespace

NetworkCosts::NetworkCosts(const Network& network, int64_t images, NetworkPhase phase)
    : network_(network),
      images_(images),
      phase_(phase),
      element_(ElementBytes(network.model.weights).value_or(0)),
      gradient_(ElementBytes(network.model.gradients).value_or(0)) {
  for (size_t i = 0; i < network.model.layers.size(); ++i) {
    const NetworkLayer& layer = network.model.layers[i];
    bool needs = ParametersOf(layer, network.InputsOf(i)) != 0;
    for (const size_t input : layer.inputs) needs = needs || needs_[input];
    needs_.push_back(needs);
  }
}

NetworkWork NetworkCosts::Elementwise(int64_t flops, int64_t read, int64_t written) const {
  return {.flops = flops, .read = Bytes{read * element_}, .written = Bytes{written * element_}};
}

NetworkWork NetworkCosts::Product(int64_t products, int64_t additions, int64_t read,
                                  int64_t written) const {
  NetworkWork work = Elementwise(2 * products + additions, read, written);
  work.matrix_flops = 2 * products;
  return work;
}

NetworkWork NetworkCosts::WeightGradient(int64_t products, int64_t additions, int64_t read,
                                         int64_t parameters) const {
  NetworkWork work = Product(products, additions, read, 0);
  work.written = Bytes{parameters * gradient_};
  return work;
}

NetworkWorks NetworkCosts::Of(size_t layer, bool adds) const {
  NetworkWorks works;
  const LayerKind kind = network_.model.layers[layer].kind;
  switch (kind) {
    case LayerKind::kInput:
    case LayerKind::kSlice:
    case LayerKind::kFlatten: return {};
    case LayerKind::kConv:
    case LayerKind::kLinear: works = Products(layer); break;
    case LayerKind::kBatchNorm:
    case LayerKind::kGroupNorm:
    case LayerKind::kLayerNorm: works = Norm(layer); break;
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kSilu:
    case LayerKind::kSigmoid:
    case LayerKind::kGelu:
    case LayerKind::kGeglu: works = Activation(layer); break;
    case LayerKind::kMaxPool:
    case LayerKind::kAvgPool:
    case LayerKind::kGlobalPool:
    case LayerKind::kUpsample:
    case LayerKind::kPixelShuffle: works = Pool(layer); break;
    case LayerKind::kAdd:
    case LayerKind::kMultiply:
    case LayerKind::kModulate:
    case LayerKind::kConcat: works = Combination(layer); break;
    case LayerKind::kAttention: works = Attention(layer); break;
    case LayerKind::kPositions:
    case LayerKind::kSinusoid:
    case LayerKind::kEmbedding: works = Lookup(layer); break;
    case LayerKind::kCrossEntropy:
    case LayerKind::kSquaredError: works = Loss(layer); break;
  }
  if (!needs_[layer] || phase_ == NetworkPhase::kInference) {
    works.input_gradient.reset();
    works.weight_gradient.reset();
  }
  if (adds && works.weight_gradient) {
    works.weight_gradient->read.count += works.weight_gradient->written.count;
  } else if (adds && works.input_gradient) {
    const NetworkLayer& made = network_.model.layers[layer];
    works.input_gradient->read.count += ParametersOf(made, network_.InputsOf(layer)) * gradient_;
  }
  return works;
}

NetworkWorks NetworkCosts::Products(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t in = Elements(made.inputs[0]);
  const int64_t out = Elements(layer);
  const int64_t parameters = ParametersOf(made, network_.InputsOf(layer));
  const int64_t biases = made.bias ? made.shape.channels : 0;
  const int64_t weights = parameters - biases;
  const int64_t additions = made.bias ? out : 0;
  // Each output value is a sum of as many products.
  const int64_t products = out * (weights / made.shape.channels);
  NetworkWorks works{.forward = Product(products, additions, in + parameters, out)};
  if (needs_[made.inputs[0]]) works.input_gradient = Product(products, 0, out + weights, in);
  works.weight_gradient = WeightGradient(products, additions, in + out, parameters);
  if (made.kind == LayerKind::kLinear) {
    const int64_t rows = images_ * network_.shapes[layer].positions();
    const int64_t inner = network_.shapes[made.inputs[0]].channels;
    const int64_t outer = made.shape.channels;
    works.forward->product = {.count = 1, .rows = rows, .inner = inner, .columns = outer};
    if (works.input_gradient) {
      works.input_gradient->product = {.count = 1, .rows = rows, .inner = outer, .columns = inner};
    }
    works.weight_gradient->product = {.count = 1, .rows = outer, .inner = rows, .columns = inner};
  }
  return works;
}

NetworkWorks NetworkCosts::Norm(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t size = Elements(layer);
  const int64_t parameters = ParametersOf(made, network_.InputsOf(layer));
  const ElementFlops flops = made.affine ? kNormFlops : kPlainNormFlops;
  const bool fixed = made.kind == LayerKind::kBatchNorm && phase_ == NetworkPhase::kInference;
  NetworkWorks works{.forward = Elementwise((fixed ? kFixedNormFlops : flops.forward) * size,
                                            size + parameters, size)};
  works.input_gradient = Elementwise(flops.backward * size, 2 * size + parameters, size);
  works.input_gradient->written.count += parameters * gradient_;
  return works;
}

NetworkWorks NetworkCosts::Activation(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t in = Elements(made.inputs[0]);
  const int64_t out = Elements(layer);
  const ElementFlops flops = FlopsOfActivation(made.kind);
  return {.forward = Elementwise(flops.forward * out, in, out),
          .input_gradient = Elementwise(flops.backward * out, out + in, in)};
}

NetworkWorks NetworkCosts::Pool(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t in = Elements(made.inputs[0]);
  const int64_t out = Elements(layer);
  const int64_t window = made.kernel.height * made.kernel.width;
  if (made.kind == LayerKind::kMaxPool) {
    NetworkWorks works{.forward = Elementwise((window - 1) * out, in, out),
                       .input_gradient = Elementwise(out, out, in)};
    // Position in its window of each value.
    works.forward->written.count += out * kNumberBytes;
    works.input_gradient->read.count += out * kNumberBytes;
    return works;
  }
  int64_t forward = 0;
  int64_t backward = 0;
  if (made.kind == LayerKind::kAvgPool) {
    forward = window * out;
    backward = (1 + window) * out;
  } else if (made.kind == LayerKind::kGlobalPool) {
    forward = in;
    backward = out;
  } else if (made.kind == LayerKind::kUpsample) {
    backward = out - in;
  }
  return {.forward = Elementwise(forward, in, out),
          .input_gradient = Elementwise(backward, out, in)};
}

NetworkWorks NetworkCosts::Combination(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t out = Elements(layer);
  int64_t read = 0;
  for (const size_t input : made.inputs) read += Elements(input);
  const auto is_vector = [&](size_t input) { return Elements(input) != out; };
  NetworkWorks works;
  NetworkWork backward;
  switch (made.kind) {
    case LayerKind::kAdd:
      works.forward = Elementwise((static_cast<int64_t>(made.inputs.size()) - 1) * out, read, out);
      // Inputs of the result's shape get its gradient unchanged; vectors get the sum.
      for (const size_t input : made.inputs) {
        if (!needs_[input] || !is_vector(input)) continue;
        backward.flops += out;
        backward.read = Bytes{out * element_};
        backward.written.count += Elements(input) * element_;
      }
      break;
    case LayerKind::kMultiply:
      works.forward = Elementwise(out, read, out);
      for (size_t i = 0; i < 2; ++i) {
        const size_t input = made.inputs[i];
        if (!needs_[input]) continue;
        if (backward.flops == 0) backward.read = Bytes{out * element_};
        backward.flops += is_vector(input) ? 2 * out : out;
        backward.read.count += Elements(made.inputs[1 - i]) * element_;
        backward.written.count += Elements(input) * element_;
      }
      break;
    case LayerKind::kModulate: {
      const int64_t vector = Elements(made.inputs[1]);
      works.forward = Elementwise(2 * out + vector, read, out);
      // For the shift a sum, for the scale one of products with x.
      backward = Elementwise(3 * out, 2 * out, 2 * vector);
      if (needs_[made.inputs[0]]) {
        backward.flops += out + vector;
        backward.read.count += vector * element_;
        backward.written.count += out * element_;
      }
      break;
    }
    default: works.forward = Elementwise(0, read, out); break;  // kConcat: a copy
  }
  if (backward.written.count != 0) works.input_gradient = backward;
  return works;
}

NetworkWorks NetworkCosts::Attention(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const Shape& queries = network_.shapes[layer];
  const Shape& keys = network_.shapes[made.inputs.size() == 1 ? layer : made.inputs[1]];
  const int64_t pairs = images_ * made.heads * queries.positions() * keys.positions();
  const int64_t products = queries.channels / made.heads * pairs;  // of all pairs
  const int64_t query_size = Elements(layer);
  const int64_t key_size = images_ * keys.elements();
  // Backward recomputes the scores, then computes the gradients of values, of the softmax, of
  // queries and of keys.
  return {.forward = Product(2 * products, kSoftmaxOfPair.forward * pairs,
                             query_size + 2 * key_size, query_size),
          .input_gradient = Product(5 * products, kSoftmaxOfPair.backward * pairs + 2 * query_size,
                                    3 * query_size + 2 * key_size, query_size + 2 * key_size)};
}

NetworkWorks NetworkCosts::Lookup(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t out = Elements(layer);
  NetworkWorks works;
  if (made.kind == LayerKind::kPositions) {
    const int64_t vectors = network_.shapes[layer].elements();
    works.forward = Elementwise(out, out + vectors, out);
    if (made.affine) works.weight_gradient = WeightGradient(0, out, out, vectors);
  } else if (made.kind == LayerKind::kSinusoid) {
    works.forward = Elementwise(out / 2 + out, images_, out);
  } else {
    works.forward = Elementwise(0, out, out);
    works.forward->read.count += images_ * kNumberBytes;
    // Gradients of the selected rows only.
    works.weight_gradient = WeightGradient(0, out, out, out);
    works.weight_gradient->read.count += images_ * kNumberBytes;
  }
  return works;
}

NetworkWorks NetworkCosts::Loss(size_t layer) const {
  const NetworkLayer& made = network_.model.layers[layer];
  const int64_t size = Elements(made.inputs[0]);
  if (made.kind == LayerKind::kSquaredError) {
    return {.forward = NetworkWork{.flops = 3 * size,
                                   .read = Bytes{2 * size * element_},
                                   .written = Bytes{kRealBytes}},
            .input_gradient = Elementwise(2 * size, 2 * size, size)};
  }
  const int64_t rows = images_ * network_.shapes[made.inputs[0]].positions();
  // Maximum, subtract, exp, sum; then divide and scale.
  return {.forward = NetworkWork{.flops = 4 * size + 2 * rows,
                                 .read = Bytes{size * element_ + rows * kNumberBytes},
                                 .written = Bytes{(size + rows) * kRealBytes}},
          .input_gradient = NetworkWork{.flops = 2 * size,
                                        .read = Bytes{size * kRealBytes + rows * kNumberBytes},
                                        .written = Bytes{size * element_}}};
}

NetworkWork NetworkCosts::GradientSum(size_t layer, int64_t count) const {
  const int64_t size = Elements(layer);
  return Elementwise((count - 1) * size, count * size, size);
}

NetworkWork NetworkCosts::Noise() const {
  return Elementwise(kNoiseFlops * Elements(0), 0, Elements(0));
}

NetworkWork NetworkCosts::AddNoise() const {
  return Elementwise(kNoisyFlops * Elements(0), 2 * Elements(0), Elements(0));
}

NetworkWork NetworkCosts::Denoise() const {
  return Elementwise(kDenoiseFlops * Elements(0), 2 * Elements(0), Elements(0));
}

size_t NetworkCosts::ViewedBy(size_t layer) const {
  const std::vector<NetworkLayer>& layers = network_.model.layers;
  while (IsView(layers[layer].kind)) layer = layers[layer].inputs[0];
  return layer;
}

NetworkCosts::NeededByBackward NetworkCosts::NeedsOf(size_t i) const {
  const NetworkLayer& layer = network_.model.layers[i];
  NeededByBackward needed;
  if (!needs_[i]) return needed;
  const auto keep = [&](size_t result) {
    result = ViewedBy(result);
    if (std::ranges::find(needed.results, result) == needed.results.end()) {
      needed.results.push_back(result);
    }
  };
  switch (layer.kind) {
    case LayerKind::kConv:
    case LayerKind::kLinear:
    case LayerKind::kBatchNorm:
    case LayerKind::kGroupNorm:
    case LayerKind::kLayerNorm:
    case LayerKind::kSilu:
    case LayerKind::kGelu:
    case LayerKind::kGeglu: keep(layer.inputs[0]); break;
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kSigmoid: keep(i); break;
    case LayerKind::kMaxPool: needed.other.count = Elements(i) * kNumberBytes; break;
    case LayerKind::kMultiply:
      if (needs_[layer.inputs[0]]) keep(layer.inputs[1]);
      if (needs_[layer.inputs[1]]) keep(layer.inputs[0]);
      break;
    case LayerKind::kModulate:
      keep(layer.inputs[0]);
      keep(layer.inputs[2]);
      break;
    case LayerKind::kAttention:
      for (const size_t input : layer.inputs) keep(input);
      keep(i);
      break;
    case LayerKind::kEmbedding: needed.other.count = images_ * kNumberBytes; break;
    case LayerKind::kCrossEntropy:
      needed.other.count = Elements(layer.inputs[0]) * kRealBytes;
      break;
    case LayerKind::kSquaredError:
      keep(layer.inputs[0]);
      needed.other.count = Elements(layer.inputs[0]) * element_;
      break;
    case LayerKind::kInput:
    case LayerKind::kAvgPool:
    case LayerKind::kGlobalPool:
    case LayerKind::kAdd:
    case LayerKind::kConcat:
    case LayerKind::kSlice:
    case LayerKind::kFlatten:
    case LayerKind::kUpsample:
    case LayerKind::kPixelShuffle:
    case LayerKind::kPositions:
    case LayerKind::kSinusoid: break;
  }
  return needed;
}

Bytes NetworkCosts::Kept() const {
  std::vector<bool> kept(network_.model.layers.size());
  Bytes sum;
  for (size_t i = 0; i < kept.size(); ++i) {
    const NeededByBackward needed = NeedsOf(i);
    sum = sum + needed.other;
    for (const size_t result : needed.results) {
      if (!kept[result]) sum = sum + ResultBytes(result);
      kept[result] = true;
    }
  }
  return sum;
}

Status CheckNetworkWork(const Network& network, int64_t images) {
  constexpr int64_t kMostImages = int64_t{1} << 24;
  if (images < 1 || images > kMostImages) {
    return BadInput(
        fmt::format("images of a micro-batch: found {}, expected 1 to {}", images, kMostImages));
  }
  double parameters = 0;
  double elements = 0;
  for (size_t i = 0; i < network.model.layers.size(); ++i) {
    const NetworkLayer& layer = network.model.layers[i];
    const std::vector<Shape> inputs = network.InputsOf(i);
    const int64_t own = ParametersOf(layer, inputs);
    double size = AsReal(network.shapes[i].elements());
    for (const Shape& input : inputs) size += AsReal(input.elements());
    // Terms of each output element: a sum over a window, over weights, or over keys.
    double terms = 32 + 2 * AsReal(layer.kernel.height) * AsReal(layer.kernel.width);
    if (layer.kind == LayerKind::kConv || layer.kind == LayerKind::kLinear) {
      terms += 3 * AsReal(own) / AsReal(layer.shape.channels);
    }
    if (layer.kind == LayerKind::kAttention) {
      const Shape& keys = inputs.size() == 1 ? inputs[0] : inputs[1];
      terms += 16 * (1 + AsReal(layer.heads)) * AsReal(keys.positions());
    }
    const double flops = AsReal(images) * size * terms;
    if (flops > std::ldexp(1, 60)) {
      return BadInput(
          fmt::format("layer '{}': found work of {:.1e} operations, expected fewer "
                      "than {:.1e}",
                      layer.name, flops, std::ldexp(1, 60)));
    }
    parameters += AsReal(own);
    elements += AsReal(images) * size;
  }
  if (parameters > std::ldexp(1, 50) || elements > std::ldexp(1, 58)) {
    return BadInput(fmt::format("found {:.1e} parameters and {:.1e} activations, expected fewer",
                                parameters, elements));
  }
  return {};
}

NetworkWork UpdateWork(const NetworkModel& model, OptimizerKind optimizer, int64_t parameters) {
  const int64_t weight = ElementBytes(model.weights).value_or(0);
  const int64_t gradient = ElementBytes(model.gradients).value_or(0);
  const int64_t state = ElementBytes(model.optimizer).value_or(0);
  const bool copies = model.weights != model.optimizer;
  // One or two moments and the optimizer's copy of the weights, which are copied into those of the
  // model.
  const bool adam = optimizer == OptimizerKind::kAdam;
  const int64_t states = adam ? 3 : 2;
  return {.flops = (adam ? kAdamUpdateFlops : kSgdUpdateFlops) * parameters,
          .read = Bytes{parameters * (gradient + states * state)},
          .written = Bytes{parameters * (states * state + (copies ? weight : 0))}};
}

Bytes OptimizerBytes(const NetworkModel& model, OptimizerKind optimizer) {
  const int64_t moments = optimizer == OptimizerKind::kAdam ? 2 : 1;
  const int64_t weights = model.weights != model.optimizer ? 1 : 0;
  const int64_t average = model.denoises ? 1 : 0;
  return Bytes{(moments + weights + average) * ElementBytes(model.optimizer).value_or(0)};
}

NetworkWork AverageWork(const NetworkModel& model, int64_t parameters) {
  const int64_t state = ElementBytes(model.optimizer).value_or(0);
  return {.flops = kAverageFlops * parameters,
          .read = Bytes{2 * parameters * state},
          .written = Bytes{parameters * state}};
}

}  // namespace etude

#include "src/suite/nn/compression/residual_codec.h"

#include <cmath>

namespace etude::suite {
namespace {

constexpr int64_t kColours = 3;
constexpr int64_t kGates = 4;
constexpr int64_t kCandidate = 2;  // place among the gates: input, forget, candidate, output
constexpr int64_t kKernel = 3;
constexpr int64_t kShuffle = 2;       // sides of pictures grow by this factor
constexpr double kMiddle = 0.5;       // grey
constexpr double kCandidateGain = 4;  // input and output gates start at one half
constexpr double kBinarizerGain = 8;
constexpr double kBitsGain = 0.25;
constexpr double kLastGain = 0.5;
// Shortcuts start with smooth functions, interpolated between so many numbers of a side and with
// this length. Their results are multiplied by a factor.
constexpr int64_t kSmoothSide = 4;
constexpr double kSmoothLength = 0.1;
constexpr double kShortcutFactor = 0.72;

at::Tensor Drawn(at::IntArrayRef sizes, CodecShape::Start start, double gain) {
  const double scale = 1 / std::sqrt(static_cast<double>(sizes[1] * sizes[2] * sizes[3]));
  return start == CodecShape::Start::kScaled ? Normal(sizes, 0, gain * scale)
                                             : Uniform(sizes, -scale, scale);
}

at::Tensor Drawn(const Scope& scope, at::IntArrayRef sizes, CodecShape::Start start, double gain) {
  return scope.Parameter("weight", Drawn(sizes, start, gain));
}

Window SameSize(int64_t kernel, int64_t stride = 1) {
  return {.kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}};
}

}  // namespace

double CodecShape::rate() const {
  return static_cast<double>(iterations * bits) /
         static_cast<double>(ResidualCodec::kCell * ResidualCodec::kCell);
}

StridedLstm::StridedLstm(const Scope& scope, const Shape& shape, CodecShape::Start start,
                         int64_t group)
    : of_input_(SameSize(kKernel, shape.stride)), of_hidden_(SameSize(shape.hidden_kernel)) {
  const int64_t out = kGates * shape.hidden / group;
  const int64_t side = shape.hidden_kernel;
  const at::Tensor input = Drawn({out, shape.in, kKernel, kKernel}, start, 1);
  if (start == CodecShape::Start::kScaled) {
    input.narrow(0, kCandidate * out / kGates, out / kGates).mul_(kCandidateGain);
  }
  weight_ih_ = scope.Parameter("weight_ih", input.repeat_interleave(group, 0));
  weight_hh_ = scope.Parameter(
      "weight_hh", Drawn({out, shape.hidden, side, side}, start, 1).repeat_interleave(group, 0));
}

StridedLstm::State StridedLstm::operator()(const at::Tensor& x, const State& before) const {
  at::Tensor sums = Convolution2d(x, weight_ih_, {}, of_input_);
  if (before.hidden.defined()) {
    sums = sums + Convolution2d(before.hidden, weight_hh_, {}, of_hidden_);
  }
  const std::vector<at::Tensor> gates = sums.chunk(kGates, 1);
  at::Tensor cell = gates[0].sigmoid() * gates[kCandidate].tanh();
  if (before.cell.defined()) cell = cell + gates[1].sigmoid() * before.cell;
  return {gates[3].sigmoid() * cell.tanh(), cell};
}

ResidualCodec::ResidualCodec(const Scope& scope, const CodecShape& shape)
    : weights_(&scope.weights()), shape_(shape) {
  const Scope encoder = scope["encoder"];
  encoder_first_ =
      Drawn(encoder["conv"], {shape.encoder[0], kColours, kKernel, kKernel}, shape.start, 1);
  for (size_t i = 1; i < shape.encoder.size(); ++i) {
    encoder_.emplace_back(
        encoder["lstm"][std::ssize(encoder_)],
        StridedLstm::Shape{.in = shape.encoder[i - 1], .hidden = shape.encoder[i], .stride = 2},
        shape.start);
  }
  binarizer_ = Drawn(scope["binarizer"], {shape.bits, shape.encoder.back(), 1, 1}, shape.start,
                     kBinarizerGain);
  const Scope decoder = scope["decoder"];
  int64_t channels = shape.decoder[0];
  decoder_first_ = Drawn(decoder["first"], {channels, shape.bits, 1, 1}, shape.start, kBitsGain);
  for (size_t i = 0; i < shape.decoder.size(); ++i) {
    const int64_t hidden = shape.decoder[i];
    decoder_.emplace_back(
        decoder["lstm"][std::ssize(decoder_)],
        StridedLstm::Shape{.in = channels, .hidden = hidden, .hidden_kernel = i < 2 ? 1 : kKernel},
        shape.start, shape.start == CodecShape::Start::kScaled ? kShuffle * kShuffle : 1);
    channels = hidden / (kShuffle * kShuffle);
  }
  decoder_last_ = Drawn(decoder["last"], {kColours, channels, 1, 1}, shape.start, kLastGain);
  if (!shape.has_shortcuts) return;
  at::Tensor smooth =
      Resize(Normal({shape.bits, kColours, kSmoothSide, kSmoothSide}, 0, 1), kCell, kCell);
  smooth = smooth * (kSmoothLength / smooth.square().sum({1, 2, 3}, /*keepdim=*/true).sqrt());
  to_signs_ = encoder["shortcut"].Parameter("weight", smooth);
  from_signs_ = decoder["shortcut"].Parameter(
      "weight", smooth.flatten(1).t().contiguous().view({-1, shape.bits, 1, 1}));
}

at::Tensor ResidualCodec::Signs(const at::Tensor& means) const {
  const at::Tensor values = means.detach();
  const at::Tensor is_positive = weights_->training()
                                     ? Uniform(values.sizes(), -1, 1).to(values.device()) < values
                                     : values >= 0;
  const at::Tensor signs = is_positive.to(values.scalar_type()) * 2 - 1;
  return means + (signs - values);
}

std::vector<at::Tensor> ResidualCodec::operator()(const at::Tensor& pictures) const {
  std::vector<StridedLstm::State> encoder(encoder_.size());
  std::vector<StridedLstm::State> decoder(decoder_.size());
  std::vector<at::Tensor> after;
  at::Tensor sum = pictures.detach() * 0 + kMiddle;
  for (int64_t iteration = 0; iteration < shape_.iterations; ++iteration) {
    const at::Tensor rest = pictures - sum;
    at::Tensor x = Convolution2d(rest, encoder_first_, {}, SameSize(kKernel, 2));
    for (size_t i = 0; i < encoder_.size(); ++i) {
      encoder[i] = encoder_[i](x, encoder[i]);
      x = encoder[i].hidden;
    }
    x = Convolution2d(x, binarizer_, {}, SameSize(1));
    if (to_signs_.defined()) {
      const Window cells{.kernel = {kCell}, .stride = {kCell}};
      x = x + Convolution2d(rest, to_signs_, {}, cells) * kShortcutFactor;
    }
    const at::Tensor signs = Signs(x.tanh());
    x = Convolution2d(signs, decoder_first_, {}, SameSize(1));
    for (size_t i = 0; i < decoder_.size(); ++i) {
      decoder[i] = decoder_[i](x, decoder[i]);
      x = PixelShuffle(decoder[i].hidden, kShuffle);
    }
    x = Convolution2d(x, decoder_last_, {}, SameSize(1));
    if (from_signs_.defined()) {
      x = x +
          PixelShuffle(Convolution2d(signs, from_signs_, {}, SameSize(1)), kCell) * kShortcutFactor;
    }
    sum = sum + x.tanh() / 2;
    after.push_back(sum);
  }
  return after;
}

}  // namespace etude::suite

#include "src/suite/nn/video/cdna.h"

#include <utility>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kMoveKernel = 5;  // a frame moves by two pixels at most
constexpr double kLeast = 1e-12;    // of a kernel's values before they are divided by their sum

const Window kHalve3 = {.kernel = {3}, .stride = {2}, .padding = {1}};
const Window kHalve5 = {.kernel = {5}, .stride = {2}, .padding = {2}};

TransposedConv2d Doubling(const Scope& scope, int64_t channels, bool bias, Conv2d::Start start) {
  return {scope, channels, channels, kHalve3, /*more=*/1, bias, start};
}

}  // namespace

Cdna::Cdna(const Scope& scope, const CdnaShape& shape)
    : shape_(shape),
      reduce1_(scope["reduce1"], shape.colours, shape.channels, kHalve5, /*bias=*/false,
               shape.start),
      norm1_(scope["norm1"], shape.channels),
      reduce2_(scope["reduce2"], shape.channels, shape.channels, kHalve3, /*bias=*/true,
               shape.start),
      reduce3_(scope["reduce3"], 2 * shape.channels, 2 * shape.channels, kHalve3, /*bias=*/true,
               shape.start),
      condition_(scope["condition"], 2 * shape.channels + shape.actions + shape.states,
                 2 * shape.channels, {.kernel = {1}}, /*bias=*/true, shape.start),
      enlarge1_(Doubling(scope["enlarge1"], 4 * shape.channels, /*bias=*/true, shape.start)),
      enlarge2_(Doubling(scope["enlarge2"], 3 * shape.channels, /*bias=*/true, shape.start)),
      enlarge3_(Doubling(scope["enlarge3"], 2 * shape.channels, /*bias=*/false, shape.start)),
      norm3_(scope["norm3"], 2 * shape.channels),
      create_(scope["create"], 2 * shape.channels, shape.colours, {.kernel = {1}}, /*bias=*/true,
              shape.start),
      masks_(scope["masks"], 2 * shape.channels, shape.moved + 2, {.kernel = {1}}, /*bias=*/true,
             shape.start),
      kernels_(scope["kernels"], 4 * shape.channels * (shape.side / 8) * (shape.side / 8),
               shape.moved * kMoveKernel * kMoveKernel),
      state_(scope["state"], shape.actions + shape.states, shape.states) {
  const int64_t width = shape.channels;
  const auto add = [&](int64_t in, int64_t channels, int64_t layers) {
    for (int64_t i = 0; i < layers; ++i) {
      const Scope part = scope["recurrent"][std::ssize(recurrent_)];
      recurrent_.push_back(
          {ConvLstm(part, i == 0 ? in : channels, channels, shape.kernel, shape.start),
           GroupNorm(part["norm"], channels)});
    }
  };
  add(width, width, shape.repeated);
  add(width, 2 * width, shape.repeated);
  add(2 * width, 4 * width, 1);
  add(4 * width, 2 * width, 1);
  add(3 * width, width, 1);
}

at::Tensor Cdna::Moved(const at::Tensor& frame, const at::Tensor& hidden) const {
  const int64_t samples = frame.size(0);
  // In float32, because half precision has no number as small as the least value.
  at::Tensor kernels = (kernels_(hidden.flatten(1)).to(at::kFloat) - kLeast).relu() + kLeast;
  kernels = kernels.view({samples * shape_.moved, 1, kMoveKernel * kMoveKernel});
  kernels = kernels / kernels.sum({2}, /*keepdim=*/true);
  // Samples are the channels of a convolution by groups, and colours are its samples.
  const at::Tensor moved =
      Convolution2d(frame.transpose(0, 1), kernels.unflatten(2, {kMoveKernel, kMoveKernel}), {},
                    {.kernel = {kMoveKernel}, .padding = {kMoveKernel / 2}, .groups = samples});
  return moved.unflatten(1, {samples, shape_.moved}).permute({1, 2, 0, 3, 4});
}

at::Tensor Cdna::Next(const at::Tensor& frame, const at::Tensor& conditions, States& states) const {
  size_t layer = 0;
  const auto recur = [&](at::Tensor x, int64_t layers) {
    for (int64_t i = 0; i < layers; ++i, ++layer) {
      states[layer] = recurrent_[layer].cell(x, states[layer]);
      x = recurrent_[layer].norm(states[layer].hidden);
    }
    return x;
  };
  const at::Tensor half = norm1_(reduce1_(frame)).relu();
  const at::Tensor quarter = reduce2_(recur(half, shape_.repeated)).relu();
  at::Tensor x = reduce3_(recur(quarter, shape_.repeated)).relu();
  const at::Tensor everywhere =
      conditions.unsqueeze(2).unsqueeze(3).expand({-1, -1, x.size(2), x.size(3)});
  const at::Tensor smallest = recur(condition_(Cat({x, everywhere}, 1)).relu(), 1);
  x = recur(enlarge1_(smallest).relu(), 1);
  x = recur(enlarge2_(Cat({x, quarter}, 1)).relu(), 1);
  x = norm3_(enlarge3_(Cat({x, half}, 1))).relu();
  const at::Tensor masks = masks_(x).softmax(1).unsqueeze(2);
  const at::Tensor layers =
      Cat({frame.unsqueeze(1), create_(x).sigmoid().unsqueeze(1), Moved(frame, smallest)}, 1);
  return (masks * layers).sum({1});
}

Cdna::Prediction Cdna::operator()(const PushSequences& videos, int64_t context,
                                  const at::Tensor& is_true) const {
  States states(recurrent_.size());
  std::vector<at::Tensor> frames;
  std::vector<at::Tensor> positions;
  at::Tensor position = videos.states.select(1, 0);
  for (int64_t time = 0; time + 1 < videos.frames.size(1); ++time) {
    at::Tensor frame = videos.frames.select(1, time);
    if (time >= context) {
      frame = is_true.defined()
                  ? Where(is_true.select(1, time).view({-1, 1, 1, 1}), frame, frames.back())
                  : frames.back();
    }
    const at::Tensor conditions = Cat({videos.actions.select(1, time), position}, 1);
    frames.push_back(Next(frame, conditions, states));
    position = state_(conditions);
    positions.push_back(position);
  }
  return {Stack(frames, 1), Stack(positions, 1)};
}

}  // namespace etude::suite

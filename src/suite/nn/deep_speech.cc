#include "src/suite/nn/deep_speech.h"

#include <algorithm>

namespace etude::suite {
namespace {

constexpr double kMostLoudness = 20;  // maximum after a convolution

// Returns the positions of a window along one dimension.
int64_t Places(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  return (size + 2 * padding - kernel) / stride + 1;
}

// Sets steps after the end of each sample to 0. x: [N, C, bins, steps].
at::Tensor CutAt(const at::Tensor& x, const std::vector<int64_t>& steps) {
  const at::Tensor ends = FromValues(steps, {std::ssize(steps), 1, 1, 1});
  return x * Arange(x.size(3)).lt(ends).to(x.device());
}

}  // namespace

DeepSpeech::DeepSpeech(const Scope& scope, const DeepSpeechShape& shape)
    : windows_(shape.convolutions),
      symbols_norm_(scope["fc_norm"], shape.hidden),
      symbols_(scope["fc"], shape.hidden, shape.symbols, /*bias=*/false) {
  int64_t channels = 1;
  int64_t bins = shape.bins;
  for (const Window& window : windows_) {
    const Scope place = scope["conv"][std::ssize(convolutions_)];
    convolutions_.emplace_back(place, channels, shape.channels, window);
    convolution_norms_.emplace_back(place["norm"], shape.channels);
    channels = shape.channels;
    bins = Places(bins, window.kernel.front(), window.stride.front(), window.padding.front());
  }
  int64_t in = channels * bins;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const Scope place = scope["rnn"][layer];
    if (layer > 0) recurrent_norms_.emplace_back(place["norm"], in);
    recurrent_.emplace_back(place, Recurrent::Shape{.cell = Recurrent::Cell::kGru,
                                                    .in = in,
                                                    .hidden = shape.hidden,
                                                    .bidirectional = true});
    in = shape.hidden;
  }
}

int64_t DeepSpeech::StepsOf(int64_t frames) const {
  for (const Window& window : windows_) {
    frames = Places(frames, window.kernel.back(), window.stride.back(), window.padding.back());
  }
  return frames;
}

at::Tensor DeepSpeech::operator()(const at::Tensor& x, std::span<const int64_t> frames) const {
  at::Tensor y = x;
  std::vector<int64_t> steps(frames.begin(), frames.end());
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    const Window& window = windows_[i];
    for (int64_t& each : steps) {
      each = Places(each, window.kernel.back(), window.stride.back(), window.padding.back());
    }
    y = CutAt(convolution_norms_[i](convolutions_[i](y)).clamp(0, kMostLoudness), steps);
  }
  // [N, C, bins, steps] → [steps, N, C × bins].
  PackedSequences sequences = Pack(y.flatten(1, 2).permute({2, 0, 1}).to(at::kFloat), steps);
  for (size_t layer = 0; layer < recurrent_.size(); ++layer) {
    if (layer > 0) sequences.values = recurrent_norms_[layer - 1](sequences.values);
    sequences = recurrent_[layer](sequences);
    sequences.values = sequences.values.unflatten(1, {2, -1}).sum(1);  // sum of both directions
  }
  const at::Tensor logits = symbols_(symbols_norm_(sequences.values));
  sequences.values = logits.to(at::kFloat).log_softmax(1);
  return Unpack(sequences);
}

}  // namespace etude::suite

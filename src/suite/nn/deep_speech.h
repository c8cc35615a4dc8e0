#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct DeepSpeechShape {
  int64_t bins = 161;                // of the spectrogram
  int64_t channels = 32;             // of each convolution
  std::vector<Window> convolutions;  // over bins × frames
  int64_t layers = 5;                // recurrent ones
  int64_t hidden = 800;
  int64_t symbols = 29;  // with CTC's blank
};

// DeepSpeech2 (Amodei, 1512.02595) with the numbers of its layers left open: convolutions over a
// spectrogram; recurrent layers in both directions, which are added; a linear layer to symbols.
// Batch norm before each but the first of its kind. Samples of a batch do not see how much longer
// others are.
class DeepSpeech {
 public:
  DeepSpeech(const Scope& scope, const DeepSpeechShape& shape);

  // How many steps come out of so many frames.
  int64_t StepsOf(int64_t frames) const;
  // [N, 1, bins, frames], of which sample n has `frames`[n], the longest first → logarithms of
  // probabilities [steps, N, symbols], of which it has StepsOf(`frames`[n]).
  at::Tensor operator()(const at::Tensor& x, std::span<const int64_t> frames) const;

 private:
  std::vector<Window> windows_;
  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm> convolution_norms_;
  std::vector<Recurrent> recurrent_;
  std::vector<BatchNorm> recurrent_norms_;  // one fewer
  BatchNorm symbols_norm_;
  Linear symbols_;
};

}  // namespace etude::suite

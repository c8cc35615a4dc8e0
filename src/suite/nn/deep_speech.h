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
  int64_t channels = 32;             // per convolution
  std::vector<Window> convolutions;  // over bins × frames
  int64_t layers = 5;                // recurrent layers
  int64_t hidden = 800;
  int64_t symbols = 29;  // including CTC's blank
};

// DeepSpeech2 (Amodei, 1512.02595) with configurable numbers of layers: convolutions over a
// spectrogram, bidirectional recurrent layers whose directions are added, and a linear layer to
// symbols. Batch norm precedes each layer but the first of its kind. Results do not depend on
// padding by longer samples in the batch.
class DeepSpeech {
 public:
  DeepSpeech(const Scope& scope, const DeepSpeechShape& shape);

  // Returns the number of output steps for a number of frames.
  int64_t StepsOf(int64_t frames) const;
  // Maps [N, 1, bins, frames], with `frames`[n] valid in sample n and the longest first, to log
  // probabilities [steps, N, symbols], with StepsOf(`frames`[n]) valid.
  at::Tensor operator()(const at::Tensor& x, std::span<const int64_t> frames) const;

 private:
  std::vector<Window> windows_;
  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm> convolution_norms_;
  std::vector<Recurrent> recurrent_;
  std::vector<BatchNorm> recurrent_norms_;  // one fewer than layers
  BatchNorm symbols_norm_;
  Linear symbols_;
};

}  // namespace etude::suite

#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Log-magnitude spectrogram of a sound, normalised per sound to mean 0 and deviation 1.
class Spectrogram {
 public:
  struct Shape {
    int64_t rate = 16000;     // samples per second
    int64_t window = 320;     // samples (Hamming window)
    int64_t step = 160;       // samples between windows
    int64_t transform = 320;  // samples per transform, at least a window
    int64_t mel_bands = 0;    // 0: no mel bands; magnitudes of all frequencies plus 1
  };
  explicit Spectrogram(const Shape& shape);

  int64_t bins() const;
  // Computes the spectrogram of float [samples] on the CPU, with at least one sample: [bins,
  // frames].
  at::Tensor operator()(const at::Tensor& wave) const;

 private:
  Shape shape_;
  at::Tensor window_;
  at::Tensor bands_;  // [mel_bands, frequencies]
};

}  // namespace etude::suite

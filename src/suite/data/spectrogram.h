#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// How loud each frequency is in a sound, window by window: logarithms, of which each sound has mean
// 0 and deviation 1.
class Spectrogram {
 public:
  struct Shape {
    int64_t rate = 16000;     // samples a second
    int64_t window = 320;     // samples (Hamming's window)
    int64_t step = 160;       // samples from one window to the next
    int64_t transform = 320;  // samples that are transformed, at least a window
    int64_t mel_bands = 0;    // 0: each frequency of the transform, by its magnitude plus 1
  };
  explicit Spectrogram(const Shape& shape);

  int64_t bins() const;
  // float [samples] on the CPU, at least one → [bins, frames].
  at::Tensor operator()(const at::Tensor& wave) const;

 private:
  Shape shape_;
  at::Tensor window_;
  at::Tensor bands_;  // [mel_bands, frequencies]
};

}  // namespace etude::suite

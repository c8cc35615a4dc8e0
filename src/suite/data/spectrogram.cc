#include "src/suite/data/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kQuietest = 1e-6;  // added to a band's power

double MelOf(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double HertzOf(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Returns triangular filters over a transform's frequencies, with corners equally spaced on the mel
// scale: [mel_bands, frequencies].
at::Tensor MelBands(const Spectrogram::Shape& shape) {
  const int64_t frequencies = shape.transform / 2 + 1;
  const double highest = MelOf(static_cast<double>(shape.rate) / 2);
  const auto corner = [&](int64_t number) {
    return HertzOf(highest * static_cast<double>(number) /
                   static_cast<double>(shape.mel_bands + 1));
  };
  std::vector<float> weights;
  for (int64_t band = 0; band < shape.mel_bands; ++band) {
    const double low = corner(band);
    const double middle = corner(band + 1);
    const double high = corner(band + 2);
    for (int64_t i = 0; i < frequencies; ++i) {
      const double hertz =
          static_cast<double>(i * shape.rate) / static_cast<double>(shape.transform);
      const double weight =
          std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      weights.push_back(static_cast<float>(std::max(0.0, weight)));
    }
  }
  return FromValues(weights, {shape.mel_bands, frequencies});
}

}  // namespace

Spectrogram::Spectrogram(const Shape& shape)
    : shape_(shape),
      window_(0.54 - 0.46 * (Arange(shape.window).to(at::kFloat) *
                             (2 * std::numbers::pi / static_cast<double>(shape.window)))
                                .cos()) {
  if (shape.mel_bands > 0) bands_ = MelBands(shape);
}

int64_t Spectrogram::bins() const {
  return shape_.mel_bands > 0 ? shape_.mel_bands : shape_.transform / 2 + 1;
}

at::Tensor Spectrogram::operator()(const at::Tensor& wave) const {
  // Powers exceed half precision.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  // The ends are mirrored, which requires a minimum length.
  const int64_t missing = shape_.transform - wave.size(0);
  const at::Tensor sound = missing > 0 ? Cat({wave, Zeros({missing})}, 0) : wave;
  const at::Tensor magnitudes =
      sound
          .stft(shape_.transform, shape_.step, shape_.window, window_, /*center=*/true, "reflect",
                /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true)
          .abs();
  const at::Tensor loudness = shape_.mel_bands > 0
                                  ? bands_.matmul(magnitudes.square()).add(kQuietest).log()
                                  : magnitudes.log1p();
  const at::Tensor centred = loudness - loudness.mean();
  return centred / centred.square().mean().sqrt().clamp_min(kQuietest);
}

}  // namespace etude::suite

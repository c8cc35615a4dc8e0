#include "src/suite/data/spectrogram.h"

#include <numbers>

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"
#include "src/suite/precision.h"

namespace etude::suite {
namespace {

// Returns one second of a tone.
at::Tensor ToneOf(double hertz, int64_t rate) {
  return (Arange(rate).to(at::kFloat) * (2 * std::numbers::pi * hertz / static_cast<double>(rate)))
      .sin();
}

TEST(Spectrogram, AToneIsLoudestAtItsFrequency) {
  const Spectrogram plain({});
  const at::Tensor found = plain(ToneOf(1000, 16000));
  EXPECT_EQ(found.size(0), plain.bins());
  EXPECT_EQ(found.size(1), 101);
  EXPECT_TRUE(found.narrow(1, 2, 97).argmax(0).eq(1000 / 50).all().item<bool>());
  EXPECT_NEAR(found.mean().item<double>(), 0, 1e-4);
  EXPECT_NEAR(found.square().mean().item<double>(), 1, 1e-4);

  const Spectrogram mel(
      {.rate = 8000, .window = 200, .step = 80, .transform = 256, .mel_bands = 40});
  int64_t before = -1;
  for (const double hertz : {200, 500, 1000, 2000, 3500}) {
    const int64_t band = mel(ToneOf(hertz, 8000)).mean(1).argmax().item<int64_t>();
    EXPECT_GT(band, before);
    before = band;
  }
  EXPECT_LT(before, 40);
}

TEST(Spectrogram, ShortAndSilentSoundsHaveOne) {
  const Spectrogram spectrogram({});
  const at::Tensor found = spectrogram(Zeros({1}));
  EXPECT_EQ(found.size(1), 3);
  EXPECT_TRUE(found.isfinite().all().item<bool>());
}

TEST(Spectrogram, DoesNotFollowThePrecisionOfModels) {
  const Spectrogram mel({.mel_bands = 40});
  const at::Tensor loud = ToneOf(1000, 16000) * 100;
  const at::Tensor expected = mel(loud);
  const PrecisionGuard half(Precision::kFp16, at::kCPU);
  EXPECT_TRUE(mel(loud).equal(expected));
}

}  // namespace
}  // namespace etude::suite

#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Structural similarity at several scales, MS-SSIM (Wang, Simoncelli & Bovik 2003). Windows are
// normal with a deviation of 1.5 pixels, 11 × 11, and lie within the picture. Pictures are halved
// between scales by means of 2 × 2 pixels. The five scales have the published exponents.
inline constexpr int64_t kSsimScales = 5;
// Smallest side of pictures that have a window at all scales.
inline constexpr int64_t kSmallestSsimSide = 176;

// Returns the similarity of `pictures` and `copies`, [N, C, H, W] with values from 0 to 1, as [N]:
// the mean over colours; 1 for equal pictures. Sides are at least kSmallestSsimSide.
at::Tensor MultiScaleSsim(const at::Tensor& pictures, const at::Tensor& copies);

// Returns the peak signal-to-noise ratio in dB, [N]: −10 log10 of the mean squared difference.
at::Tensor PeakSignalToNoise(const at::Tensor& pictures, const at::Tensor& copies);

}  // namespace etude::suite

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

// PyTorch operators that are not tensor methods, under Etude's own names: PyTorch's headers take
// seconds to compile and are included only in functional.cc. Shapes: N samples, C channels, H × W
// positions. All functions throw PyTorch's exceptions.
namespace etude::suite {

// Constants and random numbers, on the CPU, float32 unless specified.
at::Tensor Zeros(at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
at::Tensor Ones(at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
at::Tensor Full(at::IntArrayRef sizes, double value);
at::Tensor Arange(int64_t end);  // int64 [end]
at::Tensor Uniform(at::IntArrayRef sizes, double low, double high);
at::Tensor Normal(at::IntArrayRef sizes, double mean, double deviation);
// Copies of values.
at::Tensor FromValues(std::span<const float> values, at::IntArrayRef sizes);
at::Tensor FromValues(std::span<const int64_t> values, at::IntArrayRef sizes);

// Seeds PyTorch's generators on all devices that have one.
void SeedTorch(uint64_t seed);
// Makes PyTorch replace nondeterministic operators, or throw if there is no replacement.
void UseDeterministicOperators();

at::Tensor Cat(at::TensorList parts, int64_t dimension);
at::Tensor Stack(at::TensorList parts, int64_t dimension);
at::Tensor Where(const at::Tensor& condition, const at::Tensor& yes, const at::Tensor& no);

struct Window {
  std::vector<int64_t> kernel;  // one number per dimension, like the others
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> dilation = {1};
  int64_t groups = 1;
};

// x: [N, C, H, W], weight: [D, C / groups, h, w] → [N, D, H', W'].
at::Tensor Convolution2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const Window& window);
// The adjoint of a convolution. x: [N, C, H, W], weight: [C, D, h, w] → [N, D, H', W'] with
// H' = (H − 1) stride − 2 padding + h + `more`.
at::Tensor TransposedConvolution2d(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias, const Window& window, int64_t more = 0);
// Makes pictures larger by a factor, with fewer channels: [N, C factor², H, W] → [N, C, H factor,
// W factor] (Shi et al., 1609.05158).
at::Tensor PixelShuffle(const at::Tensor& x, int64_t factor);
// Surrounds pictures by `width` pixels on each side, mirrored at the outer pixels.
at::Tensor ReflectionPad(const at::Tensor& x, int64_t width);
// x: [N, C, D, H, W], weight: [C, E, d, h, w] → [N, E, D', H', W'].
at::Tensor TransposedConvolution3d(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias, const Window& window);
at::Tensor MaxPool2d(const at::Tensor& x, const Window& window);
at::Tensor AveragePool2d(const at::Tensor& x, const Window& window);
// Returns the mean over all positions: [N, C, H, W] → [N, C].
at::Tensor GlobalAveragePool(const at::Tensor& x);
at::Tensor Dropout(const at::Tensor& x, double share, bool training);
// Drops whole channels of [N, C, H, W].
at::Tensor ChannelDropout(const at::Tensor& x, double share, bool training);

// Moves and scales the last dimension to mean 0 and variance 1, then applies `scale` and `shift` of
// its length.
at::Tensor Normalized(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double epsilon);
// Moves and scales each channel of each sample, over its positions, to mean 0 and variance 1
// (Ulyanov, 1607.08022).
at::Tensor InstanceNormalised(const at::Tensor& x);
// Returns x where it is positive, otherwise `slope` times x.
at::Tensor LeakyRelu(const at::Tensor& x, double slope);
// Gaussian error linear unit (Hendrycks & Gimpel, 1606.08415).
at::Tensor Gelu(const at::Tensor& x);

// Samples [N, C, H, W] at positions `grid` [N, h, w, 2] (x, y, from -1 to 1 at the outer edges of
// the first and last pixel): [N, C, h, w], bilinear. Outside values are 0, or with `border` those
// of the nearest pixel. Volumes [N, C, D, H, W] take a `grid` [N, d, h, w, 3] (x, y, z).
at::Tensor GridSample(const at::Tensor& x, const at::Tensor& grid, bool border = false);
// Returns positions for GridSample of affine maps `theta` [N, 2, 3]: [N, h, w, 2].
at::Tensor AffineGrid(const at::Tensor& theta, int64_t height, int64_t width);

// Resizes [N, C, H, W] → [N, C, height, width], bilinear, with smoothing for reductions.
at::Tensor Resize(const at::Tensor& x, int64_t height, int64_t width);

// Mean loss of `logits` [N, C] for `labels` int64 [N]; labels equal to `ignored` do not count.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& labels, int64_t ignored = -100,
                        double smoothing = 0);
// Binary cross entropy for targets of the logits' shape: the mean, or without `mean` each value.
at::Tensor BinaryCrossEntropy(const at::Tensor& logits, const at::Tensor& targets,
                              bool mean = true);
// Huber loss with its corner at `beta`, divided by `beta` (Girshick, 1504.08083); each value.
at::Tensor SmoothL1(const at::Tensor& x, const at::Tensor& target, double beta);
// CTC loss (Graves 2006), mean over samples. `log_probabilities` [T, N, C], symbol 0 is the blank;
// `labels` int64 [N, S]. Samples with too few steps for their labels count as 0.
at::Tensor CtcLoss(const at::Tensor& log_probabilities, const at::Tensor& labels,
                   std::span<const int64_t> input_lengths, std::span<const int64_t> label_lengths);

// Sequences of different lengths without padding: the first step of each, the second step of those
// that have one, and so on.
struct PackedSequences {
  at::Tensor values;  // [total steps, C]
  at::Tensor counts;  // int64 on the CPU: number of sequences with a first step, a second one, …
};
// Packs x [T, N, C], with `lengths`[n] steps in sample n, descending from T to at least 1.
PackedSequences Pack(const at::Tensor& x, std::span<const int64_t> lengths);
// Returns [T, N, C], with undefined values after the end of each sequence.
at::Tensor Unpack(const PackedSequences& packed);

}  // namespace etude::suite

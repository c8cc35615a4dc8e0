#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

// The operators of PyTorch that are no methods of its tensors, by names of ours: their own headers
// take seconds to compile, and are read once, in functional.cc. Shapes: N samples, C channels,
// H × W places. Each throws what PyTorch throws.
namespace etude::suite {

// Constants and random numbers, on the CPU, float32 unless said.
at::Tensor Zeros(at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
at::Tensor Ones(at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
at::Tensor Full(at::IntArrayRef sizes, double value);
at::Tensor Arange(int64_t end);  // int64 [end]
at::Tensor Uniform(at::IntArrayRef sizes, double low, double high);
at::Tensor Normal(at::IntArrayRef sizes, double mean, double deviation);
// Copies.
at::Tensor FromValues(std::span<const float> values, at::IntArrayRef sizes);
at::Tensor FromValues(std::span<const int64_t> values, at::IntArrayRef sizes);

// Seeds PyTorch's generators, on all devices that have one.
void SeedTorch(uint64_t seed);
// Operators that may give different results for the same input are replaced from now on, or throw.
void UseDeterministicOperators();

at::Tensor Cat(at::TensorList parts, int64_t dimension);
at::Tensor Stack(at::TensorList parts, int64_t dimension);
at::Tensor Where(const at::Tensor& condition, const at::Tensor& yes, const at::Tensor& no);

struct Window {
  std::vector<int64_t> kernel;  // one number a dimension, as the others
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> dilation = {1};
  int64_t groups = 1;
};

// x: [N, C, H, W], weight: [D, C / groups, h, w] → [N, D, H', W'].
at::Tensor Convolution2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const Window& window);
at::Tensor MaxPool2d(const at::Tensor& x, const Window& window);
at::Tensor AveragePool2d(const at::Tensor& x, const Window& window);
// The mean over all places: [N, C, H, W] → [N, C].
at::Tensor GlobalAveragePool(const at::Tensor& x);
at::Tensor Dropout(const at::Tensor& x, double share, bool training);
// The same for whole channels of [N, C, H, W].
at::Tensor ChannelDropout(const at::Tensor& x, double share, bool training);

// Of [N, C, H, W] at places `grid` [N, h, w, 2] (x, y, from -1 at the first to 1 at the last
// pixel's outer edge): [N, C, h, w], bilinear. Outside is 0, or with `border` the nearest pixel.
at::Tensor GridSample(const at::Tensor& x, const at::Tensor& grid, bool border = false);
// Places for GridSample of affine maps `theta` [N, 2, 3]: [N, h, w, 2].
at::Tensor AffineGrid(const at::Tensor& theta, int64_t height, int64_t width);

// [N, C, H, W] → [N, C, height, width], bilinear, smoothed where it becomes smaller.
at::Tensor Resize(const at::Tensor& x, int64_t height, int64_t width);

// Mean losses. `logits` [N, C], `labels` int64 [N], of which those that are `ignored` do not count.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& labels, int64_t ignored = -100,
                        double smoothing = 0);
// The same for yes-or-no targets of the logits' shape; a mean, or without `mean` each.
at::Tensor BinaryCrossEntropy(const at::Tensor& logits, const at::Tensor& targets,
                              bool mean = true);
// Huber's loss with its corner at `beta`, divided by it (Girshick, 1504.08083); each.
at::Tensor SmoothL1(const at::Tensor& x, const at::Tensor& target, double beta);
// `log_probabilities` [T, N, C], symbol 0 is the blank; `labels` int64 [N, S]. Mean over samples
// (Graves 2006), of which those with too few steps for their labels count as 0.
at::Tensor CtcLoss(const at::Tensor& log_probabilities, const at::Tensor& labels,
                   std::span<const int64_t> input_lengths, std::span<const int64_t> label_lengths);

// Sequences of several lengths without what fills up the shorter ones: the first step of each, the
// second step of those that have one, and so on.
struct PackedSequences {
  at::Tensor values;  // [all steps of all, C]
  at::Tensor counts;  // int64 on the CPU: how many have a first step, a second one, …
};
// x: [T, N, C], of which sample n has `lengths`[n], from T down to at least 1.
PackedSequences Pack(const at::Tensor& x, std::span<const int64_t> lengths);
// [T, N, C]; anything behind the end of each.
at::Tensor Unpack(const PackedSequences& packed);

}  // namespace etude::suite

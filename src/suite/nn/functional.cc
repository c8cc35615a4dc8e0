#include "src/suite/nn/functional.h"

#include <ATen/Context.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/feature_dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

namespace etude::suite {

at::Tensor Zeros(at::IntArrayRef sizes, at::ScalarType type) { return at::zeros(sizes, type); }
at::Tensor Ones(at::IntArrayRef sizes, at::ScalarType type) { return at::ones(sizes, type); }
at::Tensor Full(at::IntArrayRef sizes, double value) { return at::full(sizes, value, at::kFloat); }
at::Tensor Arange(int64_t end) { return at::arange(end, at::kLong); }
at::Tensor Uniform(at::IntArrayRef sizes, double low, double high) {
  return at::empty(sizes, at::kFloat).uniform_(low, high);
}
at::Tensor Normal(at::IntArrayRef sizes, double mean, double deviation) {
  return at::empty(sizes, at::kFloat).normal_(mean, deviation);
}
at::Tensor FromValues(std::span<const float> values, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  TORCH_CHECK(std::ssize(values) == tensor.numel(), values.size(), " values for ", sizes);
  std::ranges::copy(values, tensor.mutable_data_ptr<float>());
  return tensor;
}
at::Tensor FromValues(std::span<const int64_t> values, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::kLong);
  TORCH_CHECK(std::ssize(values) == tensor.numel(), values.size(), " values for ", sizes);
  std::ranges::copy(values, tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

void SeedTorch(uint64_t seed) {
  try {
    at::manual_seed(seed);  // the CPU's generator first
  } catch (const c10::Error&) {
    // Devices of custom back-ends may lack a generator; they draw on the CPU.
  }
}
void UseDeterministicOperators() {
  at::globalContext().setDeterministicAlgorithms(/*b=*/true, /*warn_only=*/false);
}

at::Tensor Cat(at::TensorList parts, int64_t dimension) { return at::cat(parts, dimension); }
at::Tensor Stack(at::TensorList parts, int64_t dimension) { return at::stack(parts, dimension); }
at::Tensor Where(const at::Tensor& condition, const at::Tensor& yes, const at::Tensor& no) {
  return at::where(condition, yes, no);
}

at::Tensor Convolution2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const Window& window) {
  return at::conv2d(x, weight, bias, window.stride, window.padding, window.dilation, window.groups);
}
at::Tensor TransposedConvolution2d(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias, const Window& window, int64_t more) {
  return at::conv_transpose2d(x, weight, bias, window.stride, window.padding,
                              /*output_padding=*/more, window.groups, window.dilation);
}
at::Tensor PixelShuffle(const at::Tensor& x, int64_t factor) {
  return at::pixel_shuffle(x, factor);
}

at::Tensor ReflectionPad(const at::Tensor& x, int64_t width) {
  return at::reflection_pad2d(x, {width, width, width, width});
}
at::Tensor TransposedConvolution3d(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias, const Window& window) {
  return at::conv_transpose3d(x, weight, bias, window.stride, window.padding,
                              /*output_padding=*/0, window.groups, window.dilation);
}
at::Tensor MaxPool2d(const at::Tensor& x, const Window& window) {
  return at::max_pool2d(x, window.kernel, window.stride, window.padding, window.dilation);
}
at::Tensor AveragePool2d(const at::Tensor& x, const Window& window) {
  return at::avg_pool2d(x, window.kernel, window.stride, window.padding);
}
at::Tensor GlobalAveragePool(const at::Tensor& x) { return x.mean({2, 3}); }
at::Tensor Dropout(const at::Tensor& x, double share, bool training) {
  return at::dropout(x, share, training);
}
at::Tensor ChannelDropout(const at::Tensor& x, double share, bool training) {
  return at::feature_dropout(x, share, training);
}

at::Tensor Normalized(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double epsilon) {
  return at::layer_norm(x, scale.sizes(), scale, shift, epsilon);
}
at::Tensor InstanceNormalised(const at::Tensor& x) {
  return at::instance_norm(x, /*weight=*/{}, /*bias=*/{}, /*running_mean=*/{}, /*running_var=*/{},
                           /*use_input_stats=*/true, /*momentum=*/0, /*eps=*/1e-5,
                           /*cudnn_enabled=*/true);
}
at::Tensor LeakyRelu(const at::Tensor& x, double slope) { return at::leaky_relu(x, slope); }
at::Tensor Gelu(const at::Tensor& x) { return at::gelu(x); }

at::Tensor GridSample(const at::Tensor& x, const at::Tensor& grid, bool border) {
  return at::grid_sampler(x, grid, /*interpolation_mode=*/0, /*padding_mode=*/border ? 1 : 0,
                          /*align_corners=*/false);
}
at::Tensor AffineGrid(const at::Tensor& theta, int64_t height, int64_t width) {
  return at::affine_grid_generator(theta, {theta.size(0), 1, height, width},
                                   /*align_corners=*/false);
}

at::Tensor Resize(const at::Tensor& x, int64_t height, int64_t width) {
  return at::_upsample_bilinear2d_aa(x, {height, width}, /*align_corners=*/false, std::nullopt,
                                     std::nullopt);
}

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& labels, int64_t ignored,
                        double smoothing) {
  return at::cross_entropy_loss(logits, labels, /*weight=*/{}, at::Reduction::Mean, ignored,
                                smoothing);
}
at::Tensor BinaryCrossEntropy(const at::Tensor& logits, const at::Tensor& targets, bool mean) {
  return at::binary_cross_entropy_with_logits(logits, targets, /*weight=*/{}, /*pos_weight=*/{},
                                              mean ? at::Reduction::Mean : at::Reduction::None);
}
at::Tensor SmoothL1(const at::Tensor& x, const at::Tensor& target, double beta) {
  return at::smooth_l1_loss(x, target, at::Reduction::None, beta);
}
at::Tensor CtcLoss(const at::Tensor& log_probabilities, const at::Tensor& labels,
                   std::span<const int64_t> input_lengths, std::span<const int64_t> label_lengths) {
  const at::Tensor sum = at::ctc_loss(log_probabilities, labels,
                                      at::IntArrayRef(input_lengths.data(), input_lengths.size()),
                                      at::IntArrayRef(label_lengths.data(), label_lengths.size()),
                                      /*blank=*/0, at::Reduction::Sum, /*zero_infinity=*/true);
  return sum / static_cast<double>(input_lengths.size());
}

// Uses index selection instead of PyTorch's packing, whose kernels depend on the values of lengths,
// which a replay would have to know.
PackedSequences Pack(const at::Tensor& x, std::span<const int64_t> lengths) {
  const int64_t width = std::ssize(lengths);
  std::vector<int64_t> rows;  // flattened indices of step and sample
  std::vector<int64_t> counts;
  int64_t samples = width;
  for (int64_t step = 0; samples > 0; ++step) {
    while (samples > 0 && lengths[static_cast<size_t>(samples - 1)] <= step) --samples;
    if (samples > 0) counts.push_back(samples);
    for (int64_t sample = 0; sample < samples; ++sample) rows.push_back(step * width + sample);
  }
  const at::Tensor index = FromValues(rows, {std::ssize(rows)}).to(x.device());
  return {x.flatten(0, 1).index_select(0, index), FromValues(counts, {std::ssize(counts)})};
}
at::Tensor Unpack(const PackedSequences& packed) {
  const int64_t steps = packed.counts.numel();
  const auto* counts = packed.counts.const_data_ptr<int64_t>();
  std::vector<int64_t> rows;
  int64_t begin = 0;  // first row of the step
  for (int64_t step = 0; step < steps; begin += counts[step++]) {
    for (int64_t sample = 0; sample < counts[0]; ++sample) {
      rows.push_back(sample < counts[step] ? begin + sample : 0);
    }
  }
  const at::Tensor index = FromValues(rows, {std::ssize(rows)}).to(packed.values.device());
  return packed.values.index_select(0, index).unflatten(0, {steps, counts[0]});
}

}  // namespace etude::suite

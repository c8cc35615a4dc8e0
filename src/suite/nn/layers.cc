#include "src/suite/nn/layers.h"

#include <cmath>
#include <optional>
#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/_use_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lstm_cell.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace etude::suite {
namespace {

constexpr double kSmallStart = 0.01;
constexpr double kDcganStart = 0.02;

at::Tensor UniformByFan(at::IntArrayRef sizes, int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return Uniform(sizes, -bound, bound);
}

// Returns weights of a convolution [out, in, height, width], or one of the adjoint.
at::Tensor DrawKernels(at::IntArrayRef sizes, Conv2d::Start start) {
  const int64_t positions = sizes[2] * sizes[3];
  switch (start) {
    case Conv2d::Start::kUniform: return UniformByFan(sizes, sizes[1] * positions);
    case Conv2d::Start::kHe:
      return Normal(sizes, 0, std::sqrt(2 / static_cast<double>(sizes[0] * positions)));
    case Conv2d::Start::kSmall: return Normal(sizes, 0, kSmallStart);
    case Conv2d::Start::kXavier: {
      const double bound = std::sqrt(6 / static_cast<double>((sizes[0] + sizes[1]) * positions));
      return Uniform(sizes, -bound, bound);
    }
    case Conv2d::Start::kDcgan: break;
  }
  return Normal(sizes, 0, kDcganStart);
}

at::Tensor DrawBiases(int64_t count, int64_t fan_in, Conv2d::Start start) {
  switch (start) {
    case Conv2d::Start::kUniform:
    case Conv2d::Start::kHe: return UniformByFan({count}, fan_in);
    case Conv2d::Start::kSmall:
    case Conv2d::Start::kXavier:
    case Conv2d::Start::kDcgan: break;
  }
  return Zeros({count});
}

// Runs an LSTM in float32 where autocast is to float16 on the CPU: oneDNN has no such kernel for
// both directions.
class LstmInFloat {
 public:
  explicit LstmInFloat(const at::Tensor& x) {
    if (x.is_cpu() && at::autocast::is_autocast_enabled(at::kCPU) &&
        at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf) {
      guard_.emplace(c10::autocast_dispatch_keyset);
    }
  }
  // Returns the tensor in the type in which the LSTM runs.
  at::Tensor operator()(const at::Tensor& tensor) const {
    return guard_ && tensor.defined() ? tensor.to(at::kFloat) : tensor;
  }

 private:
  std::optional<c10::impl::ExcludeDispatchKeyGuard> guard_;
};

}  // namespace

Linear::Linear(const Scope& scope, int64_t in, int64_t out, bool bias)
    : csr_(std::make_shared<CsrWeight>()),
      weight_(scope.Parameter("weight", UniformByFan({out, in}, in), csr_)) {
  if (bias) bias_ = scope.Parameter("bias", UniformByFan({out}, in));
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return csr_->is_on() ? csr_->Product(x, weight_, bias_) : at::linear(x, weight_, bias_);
}

Conv2d::Conv2d(const Scope& scope, int64_t in, int64_t out, Window window, bool bias, Start start)
    : window_(std::move(window)) {
  const int64_t height = window_.kernel.front();
  const int64_t width = window_.kernel.back();
  const std::vector<int64_t> sizes = {out, in / window_.groups, height, width};
  weight_ = scope.Parameter("weight", DrawKernels(sizes, start));
  if (bias) bias_ = scope.Parameter("bias", DrawBiases(out, sizes[1] * height * width, start));
}

at::Tensor Conv2d::operator()(const at::Tensor& x) const {
  return Convolution2d(x, weight_, bias_, window_);
}

TransposedConv2d::TransposedConv2d(const Scope& scope, int64_t in, int64_t out, Window window,
                                   int64_t more, bool bias, Conv2d::Start start)
    : window_(std::move(window)),
      more_(more),
      weight_(scope.Parameter(
          "weight", DrawKernels({in, out, window_.kernel.front(), window_.kernel.back()}, start))) {
  if (bias) {
    const int64_t fan_in = out * window_.kernel.front() * window_.kernel.back();
    bias_ = scope.Parameter("bias", DrawBiases(out, fan_in, start));
  }
}

at::Tensor TransposedConv2d::operator()(const at::Tensor& x) const {
  return TransposedConvolution2d(x, weight_, bias_, window_, more_);
}

BatchNorm::BatchNorm(const Scope& scope, int64_t channels, double epsilon, double momentum,
                     double scale)
    : weights_(&scope.weights()),
      epsilon_(epsilon),
      momentum_(momentum),
      scale_(scope.Parameter("weight", Full({channels}, scale))),
      shift_(scope.Parameter("bias", Zeros({channels}))),
      mean_(scope.Buffer("running_mean", Zeros({channels}))),
      variance_(scope.Buffer("running_var", Ones({channels}))) {}

at::Tensor BatchNorm::operator()(const at::Tensor& x) const {
  if (fixed_) {
    return at::batch_norm(x, scale_.detach(), shift_.detach(), mean_, variance_,
                          /*training=*/false, momentum_, epsilon_, /*cudnn_enabled=*/true);
  }
  return at::batch_norm(x, scale_, shift_, mean_, variance_, weights_->training(), momentum_,
                        epsilon_, /*cudnn_enabled=*/true);
}

GroupNorm::GroupNorm(const Scope& scope, int64_t channels)
    : scale_(scope.Parameter("weight", Ones({channels}))),
      shift_(scope.Parameter("bias", Zeros({channels}))) {}

at::Tensor GroupNorm::operator()(const at::Tensor& x) const {
  return at::group_norm(x, /*num_groups=*/1, scale_, shift_, /*eps=*/1e-5, /*cudnn_enabled=*/true);
}

Embedding::Embedding(const Scope& scope, int64_t rows, int64_t width, double deviation,
                     int64_t padding)
    : padding_(padding) {
  at::Tensor start = Normal({rows, width}, 0, deviation);
  if (padding >= 0) start[padding].zero_();
  weight_ = scope.Parameter("weight", start);
}

at::Tensor Embedding::operator()(const at::Tensor& index) const {
  return at::embedding(weight_, index, padding_);
}

Recurrent::Recurrent(const Scope& scope, const Shape& shape)
    : weights_(&scope.weights()), shape_(shape) {
  const int64_t gates = shape.cell == Cell::kLstm ? 4 : 3;
  const int64_t directions = shape.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const int64_t in = layer == 0 ? shape.in : shape.hidden * directions;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string end = "_l" + std::to_string(layer) + (direction == 0 ? "" : "_reverse");
      const auto add = [&](const char* name, at::IntArrayRef sizes) {
        flat_.push_back(scope.Parameter(name + end, UniformByFan(sizes, shape.hidden)));
      };
      add("weight_ih", {gates * shape.hidden, in});
      add("weight_hh", {gates * shape.hidden, shape.hidden});
      if (!shape.bias) continue;
      add("bias_ih", {gates * shape.hidden});
      add("bias_hh", {gates * shape.hidden});
    }
  }
  Gather();
}

void Recurrent::Gather() const {
  if (!flat_.front().is_cuda() || !at::_use_cudnn_rnn_flatten_weight()) return;
  constexpr int64_t kCudnnLstm = 2;  // cudnnRNNMode_t
  constexpr int64_t kCudnnGru = 3;
  const at::NoGradGuard no_gradients;
  at::_cudnn_rnn_flatten_weight(flat_, /*weight_stride0=*/shape_.bias ? 4 : 2, shape_.in,
                                shape_.cell == Cell::kLstm ? kCudnnLstm : kCudnnGru, shape_.hidden,
                                /*proj_size=*/0, shape_.layers, shape_.batch_first,
                                shape_.bidirectional);
}

std::pair<at::Tensor, Recurrent::State> Recurrent::operator()(const at::Tensor& x,
                                                              const State& before) const {
  State state = before;
  if (!state.hidden.defined()) {
    const int64_t samples = x.size(shape_.batch_first ? 0 : 1);
    const int64_t rows = shape_.layers * (shape_.bidirectional ? 2 : 1);
    state.hidden = x.new_zeros({rows, samples, shape_.hidden});
    if (shape_.cell == Cell::kLstm) state.cell = state.hidden;
  }
  const bool training = weights_->training();
  at::Tensor out;
  if (shape_.cell == Cell::kLstm) {
    const LstmInFloat typed(x);
    std::tie(out, state.hidden, state.cell) =
        at::lstm(typed(x), {typed(state.hidden), typed(state.cell)}, flat_, shape_.bias,
                 shape_.layers, /*dropout=*/0, training, shape_.bidirectional, shape_.batch_first);
  } else {
    std::tie(out, state.hidden) =
        at::gru(x, state.hidden, flat_, shape_.bias, shape_.layers, /*dropout=*/0, training,
                shape_.bidirectional, shape_.batch_first);
  }
  return {out, state};
}

PackedSequences Recurrent::operator()(const PackedSequences& x) const {
  TORCH_CHECK(shape_.cell == Cell::kGru, "packed sequences are for GRUs");
  const int64_t samples = x.counts[0].item<int64_t>();
  const int64_t rows = shape_.layers * (shape_.bidirectional ? 2 : 1);
  const at::Tensor before = x.values.new_zeros({rows, samples, shape_.hidden});
  auto [out, after] = at::gru(x.values, x.counts, before, flat_, shape_.bias, shape_.layers,
                              /*dropout=*/0, weights_->training(), shape_.bidirectional);
  return {out, x.counts};
}

LstmCell::LstmCell(const Scope& scope, int64_t in, int64_t hidden)
    : weight_ih_(scope.Parameter("weight_ih", UniformByFan({4 * hidden, in}, hidden))),
      weight_hh_(scope.Parameter("weight_hh", UniformByFan({4 * hidden, hidden}, hidden))),
      bias_ih_(scope.Parameter("bias_ih", UniformByFan({4 * hidden}, hidden))),
      bias_hh_(scope.Parameter("bias_hh", UniformByFan({4 * hidden}, hidden))) {}

LstmCell::State LstmCell::operator()(const at::Tensor& x, const State& before) const {
  auto [hidden, cell] =
      at::lstm_cell(x, {before.hidden, before.cell}, weight_ih_, weight_hh_, bias_ih_, bias_hh_);
  return {.hidden = hidden, .cell = cell};
}

}  // namespace etude::suite

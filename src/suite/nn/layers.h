#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/csr_weight.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/weights.h"

// Layers. Each is constructed with the scope of its weights and called with its input. Weights are
// initialized like PyTorch's (uniform, up to 1 / √fan-in) unless specified. Copies share weights.
namespace etude::suite {

// [..., in] → [..., out].
class Linear {
 public:
  Linear(const Scope& scope, int64_t in, int64_t out, bool bias = true);
  at::Tensor operator()(const at::Tensor& x) const;
  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  std::shared_ptr<CsrWeight> csr_;
  at::Tensor weight_;
  at::Tensor bias_;
};

// [N, in, H, W] → [N, out, H', W'].
class Conv2d {
 public:
  enum class Start : uint8_t {
    kUniform,  // like PyTorch's
    kHe,       // normal, √(2 / fan-out) (He, 1502.01852)
    kSmall,    // normal, 0.01; zero biases
    kDcgan,    // normal, 0.02; zero biases (Radford, 1511.06434)
    kXavier,   // uniform, up to √(6 / (fan-in + fan-out)); zero biases (Glorot & Bengio, 2010)
  };
  Conv2d(const Scope& scope, int64_t in, int64_t out, Window window, bool bias = true,
         Start start = Start::kUniform);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Window window_;
  at::Tensor weight_;
  at::Tensor bias_;
};

// The adjoint of a convolution, which enlarges pictures: [N, in, H, W] → [N, out, H', W'], as
// TransposedConvolution2d.
class TransposedConv2d {
 public:
  TransposedConv2d(const Scope& scope, int64_t in, int64_t out, Window window, int64_t more = 0,
                   bool bias = true, Conv2d::Start start = Conv2d::Start::kDcgan);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Window window_;
  int64_t more_;
  at::Tensor weight_;
  at::Tensor bias_;
};

// Normalises each channel (the second dimension) over the batch, or by running means outside of
// training (Ioffe & Szegedy, 1502.03167).
class BatchNorm {
 public:
  explicit BatchNorm(const Scope& scope, int64_t channels, double epsilon = 1e-5,
                     double momentum = 0.1, double scale = 1);
  at::Tensor operator()(const at::Tensor& x) const;
  const at::Tensor& scale() const { return scale_; }
  // Always uses running means from now on, and stops learning.
  void Fix() { fixed_ = true; }

 private:
  bool fixed_ = false;
  const Weights* weights_;
  double epsilon_;
  double momentum_;
  at::Tensor scale_;
  at::Tensor shift_;
  at::Tensor mean_;
  at::Tensor variance_;
};

// Normalises each sample over all channels and positions, then scales and shifts each channel:
// group normalisation with one group (Wu & He, 1803.08494).
class GroupNorm {
 public:
  GroupNorm(const Scope& scope, int64_t channels);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor scale_;
  at::Tensor shift_;
};

// int64 [...] → [..., width]. Initialized normal with `deviation`. Row `padding` is constantly 0.
class Embedding {
 public:
  Embedding(const Scope& scope, int64_t rows, int64_t width, double deviation = 1,
            int64_t padding = -1);
  at::Tensor operator()(const at::Tensor& index) const;
  const at::Tensor& weight() const { return weight_; }

 private:
  int64_t padding_;
  at::Tensor weight_;
};

// A recurrent layer over [T, N, in], or [N, T, in] with `batch_first`.
class Recurrent {
 public:
  enum class Cell : uint8_t { kLstm, kGru };
  struct Shape {
    Cell cell = Cell::kLstm;
    int64_t in = 0;
    int64_t hidden = 0;
    int64_t layers = 1;
    bool bidirectional = false;
    bool batch_first = false;
    bool bias = true;
  };
  Recurrent(const Scope& scope, const Shape& shape);

  // State before the first or after the last step: [layers × directions, N, hidden]. `cell` is for
  // LSTMs only. An undefined initial state is 0.
  struct State {
    at::Tensor hidden;
    at::Tensor cell;
  };
  // Returns the outputs of all steps, [T, N, directions × hidden], and the last state.
  std::pair<at::Tensor, State> operator()(const at::Tensor& x, const State& before = {}) const;
  // Runs packed sequences without an initial state, for GRUs only. The backward direction starts at
  // each sequence's end.
  PackedSequences operator()(const PackedSequences& x) const;

 private:
  // Moves the weights into one block of memory, as cuDNN requires; otherwise it copies them in each
  // step.
  void Gather() const;

  const Weights* weights_;
  Shape shape_;
  std::vector<at::Tensor> flat_;
};

// A step of an LSTM: [N, in] → [N, hidden].
class LstmCell {
 public:
  struct State {
    at::Tensor hidden;  // [N, hidden], also the output
    at::Tensor cell;    // [N, hidden]
  };
  LstmCell(const Scope& scope, int64_t in, int64_t hidden);
  State operator()(const at::Tensor& x, const State& before) const;

 private:
  at::Tensor weight_ih_;
  at::Tensor weight_hh_;
  at::Tensor bias_ih_;
  at::Tensor bias_hh_;
};

}  // namespace etude::suite
